"""What the reference says of where user code failed, Spark's workers say too."""

import failing_app
import pytest

from wallaroo import testing
from wallaroo.loading import load_application

pytestmark = pytest.mark.xdist_group("spark")


def test_dead_1_workers_say_where_user_code_failed(spark_engine):
    application = load_application(failing_app.__file__)
    payloads = [*failing_app.FAILURES, b"unpicklable", b"recursion"]
    log = [("builder", b"a"), *[("p", payload) for payload in payloads]]
    ours, theirs = (
        testing.run(application, log, engine=engine).dead_letters
        for engine in ("spark", "reference")
    )
    assert [letter.payload for letter in ours] == [payload for _, payload in log]
    assert ours[-1].error_type == theirs[-1].error_type == "RecursionError"
    assert ours[-1].where[0].function == "Checks.compute"
    assert len(ours[-1].where) == 20
    assert [letter.where for letter in ours[:-1]] == [letter.where for letter in theirs[:-1]]
    assert [letter.causes for letter in ours[:-1]] == [letter.causes for letter in theirs[:-1]]
    assert all(letter.where for letter in ours)
    assert sum(bool(letter.causes) for letter in ours) == 2
