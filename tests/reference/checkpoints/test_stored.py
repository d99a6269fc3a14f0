"""A whole state, written and read back."""

import math
import pickle

from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint

import wallaroo
from wallaroo.keys import encode_key
from wallaroo.times import SourceMoment
from wallaroo.transport.identity import Identity
from wallaroo.transport.logged import LoggedSource, TopicPosition, encoded
from wallaroo.transport.old_states import Place
from wallaroo.transport.stamps import UNSTAMPED
from wallaroo.transport.stored_state import StoredEntity, StoredState, StoredWindows
from wallaroo.windows import shape_of

A, B = encode_key("a"), encode_key((b"b", 1))
PART = pickle.dumps([1])


def test_scale_1_what_is_written_is_what_is_read(tmp_path):
    sliding = wallaroo.range_windows(wallaroo.seconds(2)).with_slide(wallaroo.seconds(1))
    state = StoredState(
        position=12,
        now=90,
        first=3,
        sources={
            "topic": SourceMoment(
                None, None, False, {0: SourceMoment(5, 6, True), 1: SourceMoment(7, 8, False)}
            ),
            "made": SourceMoment(None, 4, True),
        },
        partitions=["counts", "fading"],
        steps=[
            Place("sliding", shape_of(sliding)),
            Place("sessions", shape_of(wallaroo.session_windows(wallaroo.seconds(1)))),
        ],
        watermarks=[4, -math.inf],
        entities=[StoredEntity("counts", A, None, PART), StoredEntity("fading", B, 80, PART)],
        windows=[
            StoredWindows(0, A, {3: PART, 4: PART}),
            StoredWindows(1, B, [(1, 2, PART)]),
        ],
        logged={
            "topic": LoggedSource(
                position=TopicPosition("id", {0: 7, 1: 9}, 3, {0: 7, 1: 20}),
                partitions={0: LoggedSource(ended=True)},
            ),
            "made": LoggedSource(True, encoded(4), 2),
            "going on": LoggedSource(last=encoded(4)),
            "unportable": LoggedSource(behind=2),
        },
        outputs={("p", 0): 5},
        topics={("p", 0): 4},
        at=100,
    )
    identity = Identity("reference", "app", [], 2, UNSTAMPED)
    checkpoint = ReferenceCheckpoint(tmp_path)
    checkpoint.write(state, identity, None)
    assert checkpoint.state() == state
