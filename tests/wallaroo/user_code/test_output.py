"""The stream that stands in for standard output while user code runs."""

import pytest

from wallaroo.user_code import output
from wallaroo.user_code.output import StepOutput


class Step:
    def running(self):
        return "count"


def test_a_line_without_an_end_is_shown_in_pieces_and_not_kept(capsys):
    stream = StepOutput(Step())
    longest = output._LONGEST_LINE
    stream.write("x" * (2 * longest + 1))
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["[count] " + "x" * longest] * 2
    stream.finish()
    assert capsys.readouterr().err == "[count] x\n"


def test_what_is_not_text_is_refused_as_standard_output_does():
    with pytest.raises(TypeError, match=r"write\(\) argument must be str, not bytes"):
        StepOutput(Step()).write(b"bytes")
    assert StepOutput(Step()).writable()


def test_bytes_for_its_buffer_are_text_in_utf_8(capsys):
    StepOutput(Step()).buffer.write("ä\n".encode() + b"\xff\n")
    assert capsys.readouterr().err == "[count] ä\n[count] \\xff\n"
