"""What Nexmark's queries have to give: the same questions in SQL, of tables that hold all events.

::

    python examples/nexmark/generator.py --events 5000 --rate 200 > /tmp/events
    python examples/nexmark/oracle.py q5 < /tmp/events

SQLite, which comes with Python, answers. The texts are close to those that the Nexmark project has
published for Flink. They add what a stream has and a table has not: the order of the rows, and for
queries without windows the rows that came before the last. A column ``event`` is an event's place
in the input. Nothing here is shared with `queries.py`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from typing import Any

TABLES = """
CREATE TABLE person (event INTEGER PRIMARY KEY, id, name, email_address, credit_card, city, state,
    date_time, extra);
CREATE TABLE auction (event INTEGER PRIMARY KEY, id, item_name, description, initial_bid, reserve,
    date_time, expires, seller, category, extra);
CREATE TABLE bid (event INTEGER PRIMARY KEY, auction, bidder, price, channel, url, date_time,
    extra);
"""

MADE_OF_THEM = """
-- The latest time so far. An event arrives then; in a run that is live, the clock says when.
CREATE TABLE clock AS
SELECT event, max(date_time) OVER (ORDER BY event) AS latest
FROM (SELECT event, date_time FROM person UNION ALL
      SELECT event, date_time FROM auction UNION ALL
      SELECT event, date_time FROM bid);

CREATE TABLE side_input AS
WITH RECURSIVE keys (key) AS (VALUES (0) UNION ALL SELECT key + 1 FROM keys WHERE key < 9999)
SELECT key, printf('%04x', key) AS value FROM keys;

-- Auctions that are closed: the latest time is more than four seconds behind their end.
CREATE VIEW closed AS
SELECT * FROM (SELECT *, (SELECT min(event) FROM clock WHERE latest > expires + 4000) AS closing
               FROM auction)
WHERE closing IS NOT NULL;

-- The bids that have won: made while the auction was open, and not before it was known.
CREATE VIEW winner AS
SELECT * FROM (
    SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.event) AS place
    FROM closed AS a JOIN bid AS b ON b.auction = a.id
    WHERE b.date_time BETWEEN a.date_time AND a.expires AND b.event > a.event)
WHERE place = 1;

CREATE VIEW dated AS
SELECT *, date(date_time / 1000, 'unixepoch') AS day,
    strftime('%H', date_time / 1000, 'unixepoch') + 0 AS hour,
    strftime('%H:%M', date_time / 1000, 'unixepoch') AS minute
FROM bid;

-- For each bid, all bids of that day up to it. What is grouped by `now` is what SQL's result was
-- when that bid had come.
CREATE VIEW so_far AS
SELECT now.event AS now, now.auction AS auction_now, now.channel AS channel_now, earlier.*
FROM dated AS now JOIN dated AS earlier ON earlier.day = now.day AND earlier.event <= now.event;
"""

STATISTICS = """
    count(*),
    count(*) FILTER (WHERE price < 10000),
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
    count(*) FILTER (WHERE price >= 1000000),
    count(DISTINCT bidder),
    count(DISTINCT bidder) FILTER (WHERE price < 10000),
    count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000),
    count(DISTINCT bidder) FILTER (WHERE price >= 1000000),
    count(DISTINCT auction),
    count(DISTINCT auction) FILTER (WHERE price < 10000),
    count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000),
    count(DISTINCT auction) FILTER (WHERE price >= 1000000)
"""

QUERIES = {
    # Pass through: what reading and writing costs.
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid ORDER BY event",
    # Currency conversion: each bid in euros.
    "q1": "SELECT auction, bidder, 0.908 * price, date_time, extra FROM bid ORDER BY event",
    # Selection: the bids for some auctions.
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0 ORDER BY event",
    # Local item suggestion: who sells in three states in category 10?
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
        ORDER BY max(p.event, a.event), a.event""",
    # Average price for a category, of the winning bids.
    "q4": """
        SELECT category, sum(price) OVER so_far / count(*) OVER so_far FROM winner
        WINDOW so_far AS (PARTITION BY category ORDER BY closing, expires, id)
        ORDER BY closing, expires, id""",
    # Hot items: which auctions have had the most bids in the last ten seconds, every two seconds?
    "q5": """
        SELECT auction, num, starttime, starttime + 10000 FROM (
            SELECT *, rank() OVER (PARTITION BY starttime ORDER BY num DESC) AS place FROM (
                SELECT auction, count(*) AS num, (date_time / 2000 - column1) * 2000 AS starttime
                FROM bid, (VALUES (0), (1), (2), (3), (4)) GROUP BY auction, starttime))
        WHERE place = 1 ORDER BY starttime, auction""",
    # Average selling price by seller, for their last ten closed auctions.
    "q6": """
        SELECT seller, sum(price) OVER last_ten / count(*) OVER last_ten FROM winner
        WINDOW last_ten AS
            (PARTITION BY seller ORDER BY closing, expires, id ROWS 9 PRECEDING)
        ORDER BY closing, expires, id""",
    # Highest bid of each ten seconds.
    "q7": """
        SELECT auction, bidder, price, date_time, extra FROM (
            SELECT *, rank() OVER (PARTITION BY date_time / 10000 ORDER BY price DESC) AS place
            FROM bid)
        WHERE place = 1 ORDER BY date_time / 10000, event""",
    # Monitor new users: who has come and opened an auction within the same ten seconds?
    "q8": """
        SELECT DISTINCT p.id, p.name, p.date_time / 10000 * 10000
        FROM person AS p JOIN auction AS a
            ON a.seller = p.id AND a.date_time / 10000 = p.date_time / 10000
        ORDER BY 3, 1""",
    # Winning bids.
    "q9": """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller,
            category, extra, auction, bidder, price, bid_date_time, bid_extra
        FROM winner ORDER BY closing, expires, id""",
    # User sessions: how many bids did a user make in each? A session ends after ten seconds.
    "q11": """
        SELECT bidder, count(*), min(date_time), max(date_time) + 10000 FROM (
            SELECT *, sum(begins) OVER (PARTITION BY bidder ORDER BY date_time, event) AS session
            FROM (
                SELECT *, date_time - lag(date_time, 1, -10000)
                    OVER (PARTITION BY bidder ORDER BY date_time, event) >= 10000 AS begins
                FROM bid))
        GROUP BY bidder, session ORDER BY 4, 1""",
    # Processing time windows: how many bids of a user arrive in each ten seconds?
    "q12": """
        SELECT bidder, count(*), latest / 10000 * 10000 AS starttime, latest / 10000 * 10000 + 10000
        FROM bid JOIN clock USING (event) GROUP BY bidder, starttime ORDER BY starttime, bidder""",
    # Bounded side input join: each bid with a value from a table.
    "q13": """
        SELECT auction, bidder, price, date_time, value
        FROM bid JOIN side_input ON auction % 10000 = key ORDER BY event""",
    # Calculation: the time of day, and how often "c" is in the filling.
    "q14": """
        SELECT auction, bidder, 0.908 * price,
            CASE WHEN hour >= 8 AND hour <= 18 THEN 'dayTime'
                WHEN hour <= 6 OR hour >= 20 THEN 'nightTime'
                ELSE 'otherTime' END,
            date_time, extra, length(extra) - length(replace(extra, 'c', ''))
        FROM dated WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000 ORDER BY event""",
    # Bidding statistics report, by day.
    "q15": f"SELECT day, {STATISTICS} FROM so_far GROUP BY now ORDER BY now",  # noqa: S608 - a constant
    # Channel statistics report, by channel and day.
    "q16": f"""
        SELECT channel, day, max(minute), {STATISTICS}
        FROM so_far WHERE channel = channel_now GROUP BY now ORDER BY now""",  # noqa: S608 - the same
    # Auction statistics report, by auction and day.
    "q17": """
        SELECT auction, day, count(*), count(*) FILTER (WHERE price < 10000),
            count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
            count(*) FILTER (WHERE price >= 1000000),
            min(price), max(price), sum(price) / count(*), sum(price)
        FROM so_far WHERE auction = auction_now GROUP BY now ORDER BY now""",
    # Find last bid, of each bidder in each auction.
    "q18": """
        SELECT auction, bidder, price, channel, url, date_time, extra FROM (
            SELECT *, max(date_time) OVER (PARTITION BY bidder, auction ORDER BY event) AS last
            FROM bid)
        WHERE date_time = last ORDER BY event""",
    # Auction top 10 price: the rank that a bid has when it comes.
    "q19": """
        SELECT auction, bidder, price, channel, url, date_time, extra, place FROM (
            SELECT *, (SELECT 1 + count(*) FROM bid AS earlier
                WHERE earlier.auction = bid.auction AND earlier.event < bid.event
                    AND earlier.price >= bid.price) AS place
            FROM bid)
        WHERE place <= 10 ORDER BY event""",
    # Expand bid with auction, in category 10.
    "q20": """
        SELECT auction, bidder, price, channel, url, b.date_time, b.extra, item_name, description,
            initial_bid, reserve, a.date_time, expires, seller, category, a.extra
        FROM bid AS b JOIN auction AS a ON b.auction = a.id
        WHERE category = 10 ORDER BY max(a.event, b.event), b.event""",
    # Add channel id.
    "q21": """
        SELECT auction, bidder, price, channel,
            CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
                WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE substr(url, instr(url, '&channel_id=') + length('&channel_id=')) END
        FROM bid
        WHERE instr(url, '&channel_id=')
            OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
        ORDER BY event""",
    # Get URL directories.
    "q22": """
        SELECT auction, bidder, price, channel, json_extract(directories, '$[3]'),
            json_extract(directories, '$[4]'), json_extract(directories, '$[5]')
        FROM (SELECT *, '["' || replace(url, '/', '","') || '"]' AS directories FROM bid)
        ORDER BY event""",
}


def tables(lines: Iterable[bytes]) -> sqlite3.Connection:
    """Return tables of the events that these lines hold."""
    made = sqlite3.connect(":memory:")
    made.executescript(TABLES)
    for event, line in enumerate(lines):
        [(kind, fields)] = json.loads(line).items()
        values = (event, *fields.values())
        marks = ", ".join("?" * len(values))
        made.execute(f"INSERT INTO {kind} VALUES ({marks})", values)  # noqa: S608 - one of three
    made.executescript(MADE_OF_THEM)
    return made


def rows(query: str, events: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Return the rows that a query has to give."""
    return events.execute(QUERIES[query])


def main() -> None:
    """Print a query's rows, for the events on standard input."""
    for row in rows(sys.argv[1], tables(sys.stdin.buffer)):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
