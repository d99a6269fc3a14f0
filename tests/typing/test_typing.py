"""What a user's type checker says: nothing of a right application, something of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

MISUSES = {
    # what is written: what mypy says of that line
    'wallaroo.decoder(header_length="4", length_fmt=">I")': "call-overload",
    "wallaroo.decoder(4)": "call-overload",
    "wallaroo.computation()": "call-arg",
    "wallaroo.computation(name=5)": "arg-type",
    "wallaroo.computation(decode)": "arg-type",
    "wallaroo.encoder(5)": "arg-type",
    "wallaroo.encoder(encode, decode)": "call-arg",
    'split(b"bytes where text is meant")': "arg-type",
    'split.compute_multi("one", "two")': "call-arg",
    'split.compute("it is a multi computation")': "attr-defined",
    'count("no state")': "call-arg",
    "first_letter(5)": "arg-type",
    "decode.header_length(4)": "call-arg",
    "wallaroo.ApplicationBuilder(5)": "arg-type",
    'builder.new_pipeline("p", 7010)': "arg-type",
    'builder.new_pipeline("p")': "call-arg",
    "builder.to()": "call-arg",
    "builder.to_state_partition(count, Totals)": "call-arg",
    'builder.to_state_partition(count, Totals, "t", first_letter, "abc")': "arg-type",
    "builder.to_sink(source)": "arg-type",
    "builder.to_sinks(sink)": "arg-type",
    "builder.to_sinks(None)": "arg-type",
    "builder.done().build().nodes.append(1)": "attr-defined",
    'wallaroo.TCPSourceConfig("h", 1, decode, max_size="1")': "arg-type",
    'wallaroo.TCPSinkConfig("h", None, encode)': "arg-type",
    "wallaroo.tcp_parse_input_addrs(5)": "arg-type",
    'testing.run(application, "payloads")': "arg-type",
    'testing.run(application, {"p": [b"a"]}, isolation="none")': "arg-type",
    'testing.run(application, {"p": [b"a"]}, on_error="ignore")': "arg-type",
    'testing.run(application, {"p": [b"a"]}).output.decode()': "attr-defined",
}

BEGIN = """
import wallaroo
from applications import Totals, application, count, decode, encode, first_letter, split
from wallaroo import testing

builder = wallaroo.ApplicationBuilder("app")
source = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)
sink = wallaroo.TCPSinkConfig("127.0.0.1", 0, encode)
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What ``mypy --strict`` says of `applications.py` and of a module of misuses, line by line."""
    directory = tmp_path_factory.mktemp("typing")
    misuses = directory / "misuses.py"
    misuses.write_text(BEGIN + "".join(f"{line}\n" for line in MISUSES))
    application = directory / "applications.py"
    application.write_text((HERE / "applications.py").read_text())
    config = directory / "mypy.ini"  # the user's, not ours
    config.write_text(
        f"[mypy]\nstrict = true\nmypy_path = {ROOT}:{directory}\n"
        f"cache_dir = {ROOT / '.mypy_cache' / 'users'}\n"
    )
    options = ["--no-error-summary", "--show-error-codes", "--hide-error-context", "--no-pretty"]
    options += ["--no-color-output", "--config-file", str(config)]
    out, err, _ = api.run([*options, str(application), str(misuses)])
    assert err == ""
    return out.splitlines()


def test_typing_right_applications_pass_strict(checked):
    assert [line for line in checked if "misuses.py" not in line] == []


@pytest.mark.parametrize("misuse", MISUSES)
def test_typing_misuse_is_reported(checked, misuse):
    number = BEGIN.count("\n") + list(MISUSES).index(misuse) + 1
    said = [line for line in checked if f"misuses.py:{number}: error" in line]
    assert any(f"[{MISUSES[misuse]}]" in line for line in said), said
