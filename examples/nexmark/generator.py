"""Nexmark's events, made up from a seed: persons, the auctions they open, and the bids on them.

Print the first thousand events, one a line, and a digest of them::

    python examples/nexmark/generator.py --events 1000
    python examples/nexmark/generator.py --events 1000 | sha256sum

The model is the generator of Apache Beam: of 50 events one is a person, three are auctions and 46
are bids. Half of the bids are for the same *hot* auction, the first of the last hundred; three
quarters are by a hot bidder and three quarters of the auctions by a hot seller. Some bids and
auctions name an auction or a person that comes only later. The numbers are drawn otherwise than
there, so the events are not the same.

An event is a function of the seed and of its number alone. All numbers are drawn by SplitMix64, so
a generator in any language can make the same bytes.

A line is a JSON object with one field, ``person``, ``auction`` or ``bid``. Times are in
milliseconds since 1970, prices in cents.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

PERSONS, AUCTIONS, BIDS = 1, 3, 46
"""How many of each there are in a round of events, in this order."""

ROUND = PERSONS + AUCTIONS + BIDS

FIRST_ID = 1_000  # of persons and of auctions
FIRST_CATEGORY, CATEGORIES = 10, 5
AHEAD = 10  # ids that do not exist yet and may be named
HOT = 100  # one id in so many is hot
OPEN_AUCTIONS = 100  # on average
ACTIVE_PERSONS = 1_000
CHANNELS = 10_000

START = 1_436_918_400_000
"""When the first event happens: 2015-07-15 00:00 UTC."""

FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kim")
LAST_NAMES = ("Abel", "Brown", "Clark", "Drew", "Ellis", "Frost", "Green", "Hill", "Irving")
CITIES = ("Boise", "Casper", "Eugene", "Fresno", "Mesa", "Oakland", "Salem", "Tacoma", "Tucson")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
HOT_CHANNELS = ("Apple", "Baidu", "Facebook", "Google")

_LETTERS = 26
_LETTERS_A_DRAW = 13  # 26 ** 13 < 2 ** 64
_MASK = (1 << 64) - 1


class Draws:
    """Numbers that follow from two others: SplitMix64.

    Args:
        seed: of all events.
        number: of what is drawn; different numbers have nothing in common.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._state = _mixed(_mixed(seed) + number)

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        self._state += 0x9E3779B97F4A7C15
        return _mixed(self._state) % limit

    def hot(self, one_in: int) -> bool:
        """Return `False` once in so many times."""
        return self.below(one_in) > 0

    def one_of(self, these: tuple[str, ...]) -> str:
        """Return one of these."""
        return these[self.below(len(these))]

    def letters(self, count: int) -> str:
        """Return a word of so many letters from a to z."""
        word = ""
        while len(word) < count:
            number = self.below(_LETTERS**_LETTERS_A_DRAW)
            for _ in range(min(count - len(word), _LETTERS_A_DRAW)):
                number, letter = divmod(number, _LETTERS)
                word += chr(ord("a") + letter)
        return word

    def word(self, longest: int) -> str:
        """Return a word of three letters or more."""
        return self.letters(3 + self.below(longest - 2))

    def filling(self, used: int, average: int) -> str:
        """Return letters that make `used` bytes `average` bytes long, give or take a fifth."""
        room = max(average - used, 0)
        return self.letters(room - room // 5 + self.below(2 * (room // 5) + 1))

    def price(self) -> int:
        """Return a price from one to a million dollars, in cents; each power of ten as often."""
        return round(100 * 10 ** (6 * self.below(1_000_000) / 1_000_000))


def _mixed(number: int) -> int:
    number &= _MASK
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)


class Place(NamedTuple):
    """Where an event stands: what exists when it happens. Ids are counted from 0."""

    number: int
    time: int
    last_person: int
    last_auction: int


@dataclass(frozen=True)
class Events:
    """The events of one seed; ``Events(seed=1)[7]`` is the eighth.

    Args:
        seed: another one makes other events.
        rate: events a second, in event time.
        start: when the first event happens, in milliseconds since 1970.
        shuffled: so many events that follow each other change places: 1 leaves them in order.
    """

    seed: int = 1
    rate: float = 10_000
    start: int = START
    shuffled: int = 1

    def __iter__(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Go through all events; there is no last one."""
        return map(self.__getitem__, itertools.count())

    def __getitem__(self, position: int) -> dict[str, dict[str, Any]]:
        """Return the event that comes at a position, counted from 0."""
        first = position - position % self.shuffled
        number = first + position * 953 % self.shuffled  # 953 is a prime number: all have a place
        place = self._place(number)
        draws = Draws(self.seed, number)
        kind = number % ROUND
        if kind < PERSONS:
            return {"person": self._person(place, draws)}
        if kind < PERSONS + AUCTIONS:
            return {"auction": self._auction(place, draws)}
        return {"bid": self._bid(place, draws)}

    def _time(self, number: int) -> int:
        return self.start + int(number * 1_000 / self.rate)

    def _place(self, number: int) -> Place:
        rounds, kind = divmod(number, ROUND)
        last_person = rounds * PERSONS + min(kind, PERSONS - 1)
        last_auction = rounds * AUCTIONS + min(kind - PERSONS, AUCTIONS - 1)
        return Place(number, self._time(number), last_person, last_auction)

    def _person(self, place: Place, draws: Draws) -> dict[str, Any]:
        person: dict[str, Any] = {
            "id": FIRST_ID + place.last_person,
            "name": f"{draws.one_of(FIRST_NAMES)} {draws.one_of(LAST_NAMES)}",
            "email_address": f"{draws.word(7)}@{draws.word(5)}.com",
            "credit_card": " ".join([f"{draws.below(10_000):04}" for _ in range(4)]),
            "city": draws.one_of(CITIES),
            "state": draws.one_of(STATES),
            "date_time": place.time,
        }
        return person | {"extra": draws.filling(_size(person), 200)}

    def _auction(self, place: Place, draws: Draws) -> dict[str, Any]:
        initial_bid = draws.price()
        horizon = self._time(place.number + OPEN_AUCTIONS * ROUND // AUCTIONS) - place.time
        hot_seller = place.last_person - place.last_person % HOT
        auction: dict[str, Any] = {
            "id": FIRST_ID + place.last_auction,
            "item_name": draws.word(20),
            "description": draws.word(100),
            "initial_bid": initial_bid,
            "reserve": initial_bid + draws.price(),
            "date_time": place.time,
            "expires": place.time + 1 + draws.below(max(2 * horizon, 1)),
            "seller": FIRST_ID + (hot_seller if draws.hot(4) else _any_person(place, draws)),
            "category": FIRST_CATEGORY + draws.below(CATEGORIES),
        }
        return auction | {"extra": draws.filling(_size(auction), 500)}

    def _bid(self, place: Place, draws: Draws) -> dict[str, Any]:
        hot_auction = place.last_auction - place.last_auction % HOT
        hot_bidder = place.last_person - place.last_person % HOT + 1  # no hot seller
        bid: dict[str, Any] = {
            "auction": FIRST_ID + (hot_auction if draws.hot(2) else _any_auction(place, draws)),
            "bidder": FIRST_ID + (hot_bidder if draws.hot(4) else _any_person(place, draws)),
            "price": draws.price(),
            **self._channel(draws),
            "date_time": place.time,
        }
        return bid | {"extra": draws.filling(32, 100)}

    def _channel(self, draws: Draws) -> dict[str, str]:
        hot = draws.hot(2)
        number = draws.below(len(HOT_CHANNELS) if hot else CHANNELS)
        own = Draws(self.seed, ~(number + (CHANNELS if hot else 0)))  # a channel has one URL
        url = "https://www.nexmark.com/" + "".join([own.word(5) + "/" for _ in range(3)])
        url += "item.htm?query=1"
        if not hot and own.hot(10):
            url += f"&channel_id={own.below(1 << 31)}"
        return {"channel": HOT_CHANNELS[number] if hot else f"channel-{number}", "url": url}


def _any_person(place: Place, draws: Draws) -> int:
    active = min(place.last_person + 1, ACTIVE_PERSONS)
    return place.last_person + 1 - active + draws.below(active + AHEAD)


def _any_auction(place: Place, draws: Draws) -> int:
    first = max(place.last_auction - OPEN_AUCTIONS, 0)
    return first + draws.below(place.last_auction - first + 1 + AHEAD)


def _size(fields: Mapping[str, Any]) -> int:
    """Return the bytes of an event as Nexmark counts them: a number has eight."""
    return sum([len(value) if isinstance(value, str) else 8 for value in fields.values()])


def lines(events: Events, count: int) -> list[bytes]:
    """Return the first events as JSON, without line ends."""
    return [json.dumps(event).encode() for event in itertools.islice(events, count)]


def main() -> None:
    """Print events."""
    parser = argparse.ArgumentParser(description="Print Nexmark's events as JSON, one a line.")
    parser.add_argument("--events", type=int, default=10_000, metavar="N", help="how many (10,000)")
    parser.add_argument("--seed", type=int, default=1, help="another makes other events (1)")
    parser.add_argument("--rate", type=float, default=10_000, help="events a second (10,000)")
    parser.add_argument(
        "--shuffled", type=int, default=1, metavar="N", help="N events in turn change places (1)"
    )
    options = parser.parse_args()
    events = Events(options.seed, options.rate, shuffled=options.shuffled)
    for event in itertools.islice(events, options.events):
        sys.stdout.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    main()
