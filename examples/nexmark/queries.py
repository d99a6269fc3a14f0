"""Nexmark's queries: what happens at auctions, asked in 22 ways.

`generator.py` makes up persons, auctions and bids; ``--query`` says which query is run. In a shell
pipe, without a network::

    python examples/nexmark/generator.py --events 5000 --rate 200 > /tmp/events
    wallaroo run examples/nexmark/queries.py --query q5 --stdin --stdout < /tmp/events
    python examples/nexmark/oracle.py q5 < /tmp/events

The last command computes the same with SQLite. Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/nexmark/queries.py --query q5 --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send /tmp/events --to 127.0.0.1:7010

An output is a row, as a JSON array of the columns that the query's SQL has in `oracle.py`. Where
SQL's result has one row for each key and no window, a stream has no last row, so each event that
changes the result gives the row as it is now. Events may come up to four seconds out of order.
There is no q10: it writes files.
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import wallaroo
from wallaroo.kinds import Bounds

DELAY = wallaroo.seconds(4)
MILLISECOND = wallaroo.milliseconds(1)

SIDE_INPUT = {key: f"{key:04x}" for key in range(10_000)}
"""The table of q13."""

CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = re.compile("(?:&|^)channel_id=([^&]*)")


class Person(NamedTuple):
    """Somebody who may sell and bid. Times are in milliseconds since 1970 here."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


class Auction(NamedTuple):
    """Something is for sale until `expires`; prices are in cents."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """A person offers a price in an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


Event: TypeAlias = Person | Auction | Bid
Row: TypeAlias = tuple[Any, ...]
Stream: TypeAlias = wallaroo.Pipeline[Any, Any]
Read: TypeAlias = Callable[..., Stream]


class Events:
    """Reads lines.

    Args:
        kinds: of events; others are left out.
    """

    def __init__(self, *kinds: type[Event]) -> None:
        self._kinds = {kind.__name__.lower(): kind for kind in kinds}

    def header_length(self) -> int:
        """Return the bytes of a frame's header."""
        return 4

    def payload_length(self, header: bytes) -> int:
        """Return how many bytes follow it."""
        return int.from_bytes(header)

    def decode(self, payload: bytes) -> Any:
        """Return the event in a line, or `None`, which leaves it out."""
        [(kind, fields)] = json.loads(payload).items()
        return self._kinds[kind](**fields) if kind in self._kinds else None


def time_of(event: Event) -> int:
    """Return when an event happened, in nanoseconds since 1970."""
    return event.date_time * MILLISECOND


@wallaroo.encoder
def encode(row: Row) -> str:
    """Write a row as a line."""
    return json.dumps(row) + "\n"


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: the query that is asked for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--query", default="q0", choices=list(QUERIES))
    query = parser.parse_known_args(args)[0].query
    host, port = wallaroo.tcp_parse_input_addrs(args)[0]
    to_host, to_port = wallaroo.tcp_parse_output_addrs(args)[0]

    def read(*kinds: type[Event], event_time: Any = time_of) -> Stream:
        config = wallaroo.TCPSourceConfig(host, port, Events(*kinds), event_time=event_time)
        return wallaroo.source("events", config)

    sink = wallaroo.TCPSinkConfig(to_host, to_port, encode)
    return wallaroo.build_application(query, QUERIES[query](read).to_sink(sink))


# Rows from rows: no state


@wallaroo.computation(name="as it is")
def as_it_is(bid: Bid) -> Row:
    """Pass a bid on."""
    return bid.auction, bid.bidder, bid.price, bid.date_time, bid.extra


@wallaroo.computation(name="q1")
def in_euros(bid: Bid) -> Row:
    """Convert its price."""
    return bid.auction, bid.bidder, 0.908 * bid.price, bid.date_time, bid.extra


@wallaroo.computation(name="q2")
def of_some_auctions(bid: Bid) -> Row | None:
    """Take the bids for one auction in 123."""
    return (bid.auction, bid.price) if bid.auction % 123 == 0 else None


@wallaroo.computation(name="q13")
def with_side_input(bid: Bid) -> Row | None:
    """Look a bid's auction up in a table."""
    value = SIDE_INPUT.get(bid.auction % 10_000)
    return (bid.auction, bid.bidder, bid.price, bid.date_time, value) if value else None


@wallaroo.computation(name="q14")
def calculated(bid: Bid) -> Row | None:
    """Take the bids of some prices, with the time of day and a count of letters."""
    price = 0.908 * bid.price
    if not 1_000_000 < price < 50_000_000:
        return None
    hour = bid.date_time // 3_600_000 % 24
    kind = "dayTime" if 8 <= hour <= 18 else "otherTime" if hour in (7, 19) else "nightTime"
    return bid.auction, bid.bidder, price, kind, bid.date_time, bid.extra, bid.extra.count("c")


@wallaroo.computation(name="q21")
def with_channel_id(bid: Bid) -> Row | None:
    """Take the bids of a known channel, or with an id in their URL, and add the id."""
    channel_id = CHANNELS.get(bid.channel.lower())
    if channel_id is None:
        found = CHANNEL_ID.search(bid.url)
        if found is None:
            return None
        channel_id = found[1]
    return bid.auction, bid.bidder, bid.price, bid.channel, channel_id


@wallaroo.computation(name="q22")
def with_directories(bid: Bid) -> Row:
    """Take the URL's directories apart."""
    return bid.auction, bid.bidder, bid.price, bid.channel, *bid.url.split("/")[3:6]


# Keys


@wallaroo.key_extractor
def auction_of(event: Auction | Bid) -> int:
    """Return which auction it is about."""
    return event.id if isinstance(event, Auction) else event.auction


@wallaroo.key_extractor
def seller_of(event: Person | Auction) -> int:
    """Return who sells, or may sell."""
    return event.seller if isinstance(event, Auction) else event.id


@wallaroo.key_extractor
def bidder_of(bid: Bid) -> int:
    """Return who bids."""
    return bid.bidder


@wallaroo.key_extractor
def bidder_and_auction_of(bid: Bid) -> tuple[int, int]:
    """Return who bids in which auction."""
    return bid.bidder, bid.auction


@wallaroo.key_extractor
def day_of(bid: Bid) -> str:
    """Return a bid's day."""
    return clock_of(bid)[:10]


@wallaroo.key_extractor
def channel_and_day_of(bid: Bid) -> tuple[str, str]:
    """Return a bid's channel and day."""
    return bid.channel, day_of(bid)


@wallaroo.key_extractor
def auction_and_day_of(bid: Bid) -> tuple[int, str]:
    """Return a bid's auction and day."""
    return bid.auction, day_of(bid)


@wallaroo.key_extractor
def category_sold(won: tuple[Auction, Bid]) -> int:
    """Return the category of what was sold."""
    return won[0].category


@wallaroo.key_extractor
def seller_sold(won: tuple[Auction, Bid]) -> int:
    """Return who has sold."""
    return won[0].seller


def clock_of(bid: Bid) -> str:
    """Return a bid's time, as in ``2015-07-15 12:30:00``."""
    return str(datetime(1970, 1, 1) + timedelta(milliseconds=bid.date_time))


def rank_of(bid: Bid) -> int:
    """Return 1 for a low price, 2, or 3 for a high one."""
    return 1 if bid.price < 10_000 else 2 if bid.price < 1_000_000 else 3


# Joins: of the events with one key, one is of a kind and meets all others, whichever comes first


class Joined:
    """The one event, once it has come, and the others that wait for it."""

    def __init__(self) -> None:
        self.one: Any = None
        self.waiting: list[Any] = []

    def pairs(self, event: Event, kind: type[Event]) -> list[tuple[Any, Any]]:
        """Add an event, the one if it is of this kind; return the pairs that come of it."""
        if isinstance(event, kind):
            self.one = event
        else:
            self.waiting.append(event)
        if self.one is None:
            return []
        met, self.waiting = self.waiting, []
        return [(self.one, other) for other in met]


@wallaroo.computation(name="q3 filter")
def local(event: Person | Auction) -> Any:
    """Take the persons of three states, and the auctions of a category."""
    if isinstance(event, Person):
        return event if event.state in {"OR", "ID", "CA"} else None
    return event if event.category == 10 else None


@wallaroo.state_computation_multi(name="q3", state=Joined)
def local_items(event: Person | Auction, joined: Joined) -> list[Row]:
    """Pair auctions with their sellers."""
    pairs = joined.pairs(event, Person)
    return [(person.name, person.city, person.state, auction.id) for person, auction in pairs]


@wallaroo.state_computation_multi(name="q20", state=Joined)
def expanded(event: Auction | Bid, joined: Joined) -> list[Row]:
    """Pair bids with their auctions, of a category."""
    pairs = joined.pairs(event, Auction)
    return [bid + auction[1:] for auction, bid in pairs if auction.category == 10]


# Auctions that are closed, and the bids that have won


class OpenAuctions:
    """Auctions that are open, each with its best bid so far, and when they end."""

    def __init__(self) -> None:
        self.latest = 0
        self.best: dict[int, tuple[Auction, Bid | None]] = {}
        self.ends: list[tuple[int, int]] = []  # a heap of times and ids

    def bid(self, bid: Bid) -> None:
        """Keep a bid if it is the best: the highest, and of equal ones the earliest."""
        if bid.auction not in self.best:
            return
        auction, best = self.best[bid.auction]
        in_time = auction.date_time <= bid.date_time <= auction.expires
        offer = bid.price, -bid.date_time
        if in_time and (best is None or offer > (best.price, -best.date_time)):
            self.best[bid.auction] = auction, bid

    def closed(self) -> list[tuple[Auction, Bid]]:
        """Take away the auctions that are over; return those that somebody has won."""
        won = []
        while self.ends and self.ends[0][0] < self.latest - DELAY // MILLISECOND:
            auction, best = self.best.pop(heapq.heappop(self.ends)[1])
            if best is not None:
                won.append((auction, best))
        return won


@wallaroo.state_computation_multi(name="winning bids", state=OpenAuctions)
def winning_bids(event: Event, auctions: OpenAuctions) -> list[tuple[Auction, Bid]]:
    """Give the auctions that are closed, with the bids that have won."""
    auctions.latest = max(auctions.latest, event.date_time)
    if isinstance(event, Auction):
        auctions.best[event.id] = event, None
        heapq.heappush(auctions.ends, (event.expires, event.id))
    elif isinstance(event, Bid):
        auctions.bid(event)
    return auctions.closed()


@wallaroo.computation(name="q9")
def auction_and_bid(won: tuple[Auction, Bid]) -> Row:
    """Make a row of an auction and the bid that has won."""
    auction, bid = won
    return *auction, bid.auction, bid.bidder, bid.price, bid.date_time, bid.extra


class Average:
    """The average of what closed auctions have brought."""

    total = 0
    count = 0


@wallaroo.state_computation(name="q4", state=Average)
def average_of_category(won: tuple[Auction, Bid], average: Average) -> Row:
    """Average a category's winning bids."""
    average.total += won[1].price
    average.count += 1
    return won[0].category, average.total // average.count


class LastPrices:
    """What a seller's last auctions have brought."""

    prices: tuple[int, ...] = ()


@wallaroo.state_computation(name="q6", state=LastPrices)
def average_of_seller(won: tuple[Auction, Bid], last: LastPrices) -> Row:
    """Average a seller's last ten winning bids."""
    last.prices = (*last.prices[-9:], won[1].price)
    return won[0].seller, sum(last.prices) // len(last.prices)


# Windows


class Count:
    """How many bids a key has in a window."""

    def initial_accumulator(self) -> int:
        """Return the count of no bid."""
        return 0

    def update(self, bid: Bid, count: int) -> int:
        """Count a bid."""
        return count + 1

    def combine(self, earlier: int, later: int) -> int:
        """Return the count of two parts."""
        return earlier + later

    def output(self, key: int, count: int, window: Bounds) -> Row:
        """Return key, count, begin and end."""
        return key, count, window.start // MILLISECOND, window.end // MILLISECOND


class Highest:
    """The rows of a window that have the highest number in a column.

    Args:
        column: counted from 0.
    """

    def __init__(self, column: int) -> None:
        self._column = column

    def initial_accumulator(self) -> list[Row]:
        """Return no row."""
        return []

    def update(self, row: Row, highest: list[Row]) -> list[Row]:
        """Add a row."""
        if not highest or row[self._column] > highest[0][self._column]:
            return [row]
        return [*highest, row] if row[self._column] == highest[0][self._column] else highest

    def output(self, key: tuple[()], highest: list[Row]) -> list[Row]:
        """Return the rows."""
        return highest


class NewSellers:
    """A person's name, if they have come within the window, and whether they sell in it."""

    def initial_accumulator(self) -> tuple[str, bool]:
        """Return what is known of nobody."""
        return "", False

    def update(self, event: Person | Auction, known: tuple[str, bool]) -> tuple[str, bool]:
        """Add a person or an auction."""
        return (event.name, known[1]) if isinstance(event, Person) else (known[0], True)

    def output(self, key: int, known: tuple[str, bool], window: Bounds) -> Row | None:
        """Return a row for who has come and sells."""
        return (key, known[0], window.start // MILLISECOND) if all(known) else None


@wallaroo.computation_multi(name="each")
def each(rows: list[Row]) -> list[Row]:
    """Give the rows one by one."""
    return rows


# Statistics of bids, by day


class Statistics:
    """How many bids, bidders and auctions there are, in all (first) and of each rank."""

    def __init__(self) -> None:
        self.minute = ""
        self.bids = [0, 0, 0, 0]
        self.bidders: list[set[int]] = [set(), set(), set(), set()]
        self.auctions: list[set[int]] = [set(), set(), set(), set()]

    def add(self, bid: Bid) -> Row:
        """Add a bid; return all counts."""
        for rank in (0, rank_of(bid)):
            self.bids[rank] += 1
            self.bidders[rank].add(bid.bidder)
            self.auctions[rank].add(bid.auction)
        return *self.bids, *map(len, self.bidders), *map(len, self.auctions)


@wallaroo.state_computation(name="q15", state=Statistics)
def statistics_of_day(bid: Bid, statistics: Statistics) -> Row:
    """Count, by day."""
    return day_of(bid), *statistics.add(bid)


@wallaroo.state_computation(name="q16", state=Statistics)
def statistics_of_channel(bid: Bid, statistics: Statistics) -> Row:
    """Count, by channel and day, and say in which minute the latest bid was made."""
    statistics.minute = max(statistics.minute, clock_of(bid)[11:16])
    return bid.channel, day_of(bid), statistics.minute, *statistics.add(bid)


class AuctionStatistics:
    """The prices of an auction's bids."""

    def __init__(self) -> None:
        self.bids = [0, 0, 0, 0]
        self.least = self.most = self.total = 0


@wallaroo.state_computation(name="q17", state=AuctionStatistics)
def statistics_of_auction(bid: Bid, seen: AuctionStatistics) -> Row:
    """Count bids, and find the least, highest and average price, by auction and day."""
    price = bid.price
    seen.least = min(seen.least, price) if seen.bids[0] else price
    seen.most = max(seen.most, price)
    seen.total += price
    seen.bids[0] += 1
    seen.bids[rank_of(bid)] += 1
    average = seen.total // seen.bids[0]
    return bid.auction, day_of(bid), *seen.bids, seen.least, seen.most, average, seen.total


# The last bid, and the ten highest


class Last:
    """When a bidder's last bid in an auction was made."""

    date_time = 0


@wallaroo.state_computation(name="q18", state=Last)
def last_bid(bid: Bid, last: Last) -> Row | None:
    """Give a bid if it is now a bidder's last in an auction."""
    if bid.date_time < last.date_time:
        return None
    last.date_time = bid.date_time
    return bid


class Top:
    """An auction's ten highest prices, negative, so that the highest comes first."""

    def __init__(self) -> None:
        self.prices: list[int] = []


@wallaroo.state_computation(name="q19", state=Top)
def top_ten(bid: Bid, top: Top) -> Row | None:
    """Give a bid that is now one of an auction's ten highest, with its rank."""
    place = bisect.bisect(top.prices, -bid.price)
    if place == 10:
        return None
    top.prices.insert(place, -bid.price)
    del top.prices[10:]
    return *bid, place + 1


# The queries


TEN_SECONDS = wallaroo.range_windows(wallaroo.seconds(10))


def winners(read: Read) -> Stream:
    """Return auctions that are closed, with the bids that have won."""
    return read(Person, Auction, Bid).collect().to(winning_bids)


QUERIES: dict[str, Callable[[Read], Stream]] = {
    "q0": lambda read: read(Bid).to(as_it_is),
    "q1": lambda read: read(Bid).to(in_euros),
    "q2": lambda read: read(Bid).to(of_some_auctions),
    "q3": lambda read: read(Person, Auction).to(local).key_by(seller_of).to(local_items),
    "q4": lambda read: winners(read).key_by(category_sold).to(average_of_category),
    "q5": lambda read: (
        read(Bid)
        .key_by(auction_of)
        .to(TEN_SECONDS.with_slide(wallaroo.seconds(2)).with_delay(DELAY).over(Count))
        .collect()
        # All that one window gives has the same event time, just before the window's end.
        .to(wallaroo.range_windows(wallaroo.seconds(2)).over(Highest(1)))
        .to(each)
    ),
    "q6": lambda read: winners(read).key_by(seller_sold).to(average_of_seller),
    "q7": lambda read: (
        read(Bid).to(as_it_is).collect().to(TEN_SECONDS.with_delay(DELAY).over(Highest(2))).to(each)
    ),
    "q8": lambda read: (
        read(Person, Auction).key_by(seller_of).to(TEN_SECONDS.with_delay(DELAY).over(NewSellers))
    ),
    "q9": lambda read: winners(read).to(auction_and_bid),
    "q11": lambda read: (
        read(Bid)
        .key_by(bidder_of)
        .to(wallaroo.session_windows(wallaroo.seconds(10)).with_delay(DELAY).over(Count))
    ),
    "q12": lambda read: read(Bid, event_time=None).key_by(bidder_of).to(TEN_SECONDS.over(Count)),
    "q13": lambda read: read(Bid).to(with_side_input),
    "q14": lambda read: read(Bid).to(calculated),
    "q15": lambda read: read(Bid).key_by(day_of).to(statistics_of_day),
    "q16": lambda read: read(Bid).key_by(channel_and_day_of).to(statistics_of_channel),
    "q17": lambda read: read(Bid).key_by(auction_and_day_of).to(statistics_of_auction),
    "q18": lambda read: read(Bid).key_by(bidder_and_auction_of).to(last_bid),
    "q19": lambda read: read(Bid).key_by(auction_of).to(top_ten),
    "q20": lambda read: read(Auction, Bid).key_by(auction_of).to(expanded),
    "q21": lambda read: read(Bid).to(with_channel_id),
    "q22": lambda read: read(Bid).to(with_directories),
}
