"""Each row of the table of symptoms is tried: the old line says what it says, the new one works."""

import re

import pytest
from wallaroo_docs.pages import DOCS

from wallaroo import testing
from wallaroo.errors import ApplicationLoadError
from wallaroo.loading import load_application

APPLICATION = """
import struct
import wallaroo

{module}

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return {decoder}

@wallaroo.computation(name="compute")
def compute(data):
    return {computation}

@wallaroo.partition
def key(data):
    return {partition_function}

@wallaroo.state_computation(name="pass on")
def pass_on(message, state):
    return message, False

@wallaroo.computation(name="as text")
def as_text(data):
    return "a,12"

@wallaroo.encoder
def encode(data):
    return {encoder}

def application_setup(args):
    ab = wallaroo.ApplicationBuilder("old")
    ab.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    ab.to(as_bytes).to(compute).to(as_bytes)
    ab.to_state_partition(pass_on, dict, "states", key, ["a", "b", 1])
    return ab.to(as_text).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode)).build()

@wallaroo.computation(name="as bytes")
def as_bytes(data):
    return b"a,12"
"""
RIGHT = {
    "module": "",
    "decoder": "bs",
    "computation": "data",
    "partition_function": "'a'",
    "encoder": "data",
}


def rows():
    page = (DOCS / "migrating.md").read_text("utf-8")
    table = page.partition("| where | it says |")[2].partition("\n\n")[0]
    found = [re.findall(r"`([^`]+)`", line) for line in table.splitlines()[2:]]
    places = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    return [(place, *row) for place, row in zip(places, found, strict=True)]


def said(directory, place, line):
    """Return what an application with this line in this place says of a message, or `None`."""
    path = directory / "old.py"
    path.write_text(APPLICATION.format(**RIGHT | {place.replace(" ", "_"): line}), "utf-8")
    try:
        letters = testing.run(load_application(path), {"p": [b"a,12"]}).dead_letters
    except ApplicationLoadError as error:
        return str(error)
    return letters[0].error if letters else None


def test_the_table_is_found():
    assert len(rows()) > 10


@pytest.mark.parametrize(("place", "symptom", "old", "new"), rows())
def test_an_old_line_says_what_the_table_says_and_the_new_one_works(
    tmp_path, place, symptom, old, new
):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    assert symptom in (said(tmp_path / "old", place, old) or "")
    assert said(tmp_path / "new", place, new) is None
