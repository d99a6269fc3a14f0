"""Which HTTP requests our pages answer: by the name and the page that they come from."""

from __future__ import annotations

from wallaroo.access import refusal


def test_names_by_what_the_server_listens_at() -> None:
    everywhere = ""
    assert refusal("192.0.2.1:8089", None, everywhere) is None
    assert refusal("192.0.2.1:8089", "http://192.0.2.1:8089", everywhere) is None
    assert refusal("192.0.2.1:8089", "http://192.0.2.1:80", everywhere) is not None
    assert refusal("evil.example", None, everywhere) is not None
    assert refusal("load.example", None, "load.example") is None
    assert refusal("load.example", "https://load.example", "127.0.0.1", {"load.example"}) is None
    assert refusal("", None, everywhere) is not None
