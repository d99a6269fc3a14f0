"""Nexmark: the events are those that are published, and the queries' answers are SQL's."""

import hashlib
import json
from collections import Counter
from itertools import islice

import pytest
from nexmark_answers import GENERATOR, ORACLE, QUERIES, SHUFFLED, answers, application, events

from wallaroo import testing

IN_ORDER = GENERATOR.Events()

DIGESTS = {
    1: "1347bf2fb2c484f9adbf2ec695e59fd48e1bc98398f08e4a7590033f494e503d",
    1_000: "7c2607036df740e0fcfc20b491d359a10d457e2d6f35e7a356059a96038b0e46",
    10_000: "3470390d12c28f1f8e683f09294fb0e0f00f423d216b8c561a2b90ae4c1b484a",
}


def of_kind(kind, drawn):
    return [event[kind] for event in drawn if kind in event]


@pytest.mark.parametrize("count", DIGESTS)
def test_the_first_events_have_the_published_digest(count):
    text = b"".join([line + b"\n" for line in GENERATOR.lines(IN_ORDER, count)])
    assert hashlib.sha256(text).hexdigest() == DIGESTS[count]


def test_events_are_drawn_as_nexmark_draws_them():
    drawn = list(islice(IN_ORDER, 5_000))
    persons, auctions, bids = [of_kind(kind, drawn) for kind in ("person", "auction", "bid")]
    assert (len(persons), len(auctions), len(bids)) == (100, 300, 4_600)
    for named, ids in ((persons, 100), (auctions, 300)):
        assert [one["id"] for one in named] == list(range(1_000, 1_000 + ids))
    [(hot, of_hot)] = Counter(bid["auction"] for bid in bids[:1_000]).most_common(1)
    assert (hot, round(of_hot / 1_000, 1)) == (1_000, 0.5)
    by_hot = sum(bid["bidder"] % 100 == 1 for bid in bids) / len(bids)
    from_hot = sum(auction["seller"] % 100 == 0 for auction in auctions) / len(auctions)
    assert (round(by_hot * 20), round(from_hot * 20)) == (15, 15)  # three quarters, and some more
    known = {auction["id"] for auction in auctions}
    assert 0 < len({bid["auction"] for bid in bids} - known) <= 10


def test_shuffled_events_are_those_in_order_at_other_places():
    in_order = list(islice(GENERATOR.Events(rate=30), 150))
    shuffled = list(islice(SHUFFLED, 150))
    assert shuffled != in_order
    for first in (0, 50, 100):
        here = [json.dumps(event) for event in shuffled[first : first + 50]]
        assert sorted(here) == sorted(map(json.dumps, in_order[first : first + 50]))


def test_the_queries_are_nexmark_s_but_the_one_that_writes_files():
    assert set(QUERIES.QUERIES) == {f"q{n}" for n in range(23)} - {"q10"} == set(ORACLE.QUERIES)


@pytest.mark.parametrize("query", QUERIES.QUERIES)
def test_the_answers_are_sql_s(query):
    for engine, isolation, count in (
        ("compiled", "trusting", 2_000),
        ("reference", "isolated", 500),
    ):
        result = testing.run(
            application(query), events(query, count), engine=engine, isolation=isolation
        )
        assert result.output == answers(query, count)
        assert result.output or count == 500
        assert not result.dead_letters
        assert not result.findings
