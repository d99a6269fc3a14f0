"""Log status: status codes by day, a window that ends when the input says so."""

import io

import pytest

PIPELINE = "Count Status"

MARKED = [
    b'1.1.1.1 - - [30/Apr/2026:23:59:58 +0000] "GET / HTTP/1.1" 200 5 "-" "M"',
    b'1.1.1.1 - - [30/Apr/2026:23:59:58 +0000] "GET /a HTTP/1.0" 404 5',
    b'1.1.1.1 - - [30/Apr/2026:23:59:59 +0000] "HEAD / HTTP/1.1" 200 - "-" "M"',
    b'1.1.1.1 - - [30/Apr/2026:23:59:59 +0000] "GET /caf\xe9 HTTP/1.1" 200 5 "-" "M"',
    b"no log line \xff",
    b"END_OF_DAY",
    b"END_OF_DAY",
    b'1.1.1.1 - - [01/May/2026:00:00:01 +0000] "GET / HTTP/1.1" 304 - "-" "M"',
    b"END_OF_DAY",
    b'1.1.1.1 - - [02/May/2026:00:00:01 +0000] "GET / HTTP/1.1" 200 - "-" "M"',
]


def test_a_days_counts_go_out_on_the_boundary_and_start_over(application, run):
    result = run(application("log_status"), {PIPELINE: MARKED})
    assert result.outputs == {
        (PIPELINE, 0): [
            b"2026-04-30 200 2\n2026-04-30 404 1\n2026-04-30 null 2\n",
            b"2026-05-01 304 1\n",
        ]
    }
    assert result.dead_letters == []


def test_the_counts_as_framed_json(application, run):
    result = run(application("log_status", "--json"), {PIPELINE: MARKED})
    assert result.output == [
        b'\x00\x00\x00\x1f{"200": 2, "404": 1, "null": 2}',
        b'\x00\x00\x00\x0a{"304": 1}',
    ]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ('"GET / HTTP/1.1" 200 5', "200"),
        ('"GET / HTTP/1.0" 304', "304"),
        (r'"GET /?q=\"x\" HTTP/1.1" 200 5', "200"),
        ('"GET /a b HTTP/1.1" 400 5', "400"),
        ('"POST / HTTP/1.1" 200 5', None),
        ('"GET / HTTP/2" 200 5', None),
        ('"GET /" 200 5', None),
        ('"-" 408 -', None),
        ('"GET / HTTP/1.1" 2000 5', None),
        # Requests a client wrote where a log shows its other words.
        ('"POST / HTTP/1.1" 403 5 "GET / HTTP/1.1" 200 5', None),
        (r'"POST /?\"GET / HTTP/1.1\" 200 " 403 5', None),
    ],
)
def test_which_lines_have_a_status_code(request_, code, example):
    log_status = example("log_status")
    line = log_status.read_line(f"::1 - ann [09/Feb/2026:01:02:03 +0100] {request_}")
    assert line == log_status.Line("2026-02-09", code)


def test_the_marks_stand_between_days_and_at_the_end(example):
    log = b"".join(line + b"\n" for line in MARKED if line != b"END_OF_DAY")
    marked = list(example("access_log").mark(io.BytesIO(log.removesuffix(b"\n"))))
    expected = [line + b"\n" for line in [*MARKED, b"END_OF_DAY"]]
    del expected[6]  # the boundary that no day stands before
    assert marked == expected
    assert list(example("access_log").mark([])) == []
