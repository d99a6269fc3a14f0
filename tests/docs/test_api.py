"""The pages about the API have all public names, with their rules as links."""

import re
from importlib import import_module

import pytest
from wallaroo_docs.api import PAGES, api_pages

import wallaroo

pytestmark = pytest.mark.xdist_group("pages of the API")  # which are made once


@pytest.fixture(scope="module")
def texts():
    return api_pages()


def test_every_name_of_the_language_is_shown(texts):
    shown = re.findall(r"^### `(\w+)`", texts["language.md"], re.MULTILINE)
    assert sorted(shown) == sorted(wallaroo.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_shown_is_there(page, texts):
    module = import_module(page.module)
    shown = re.findall(
        rf"\{{ #{re.escape(page.module)}\.(\w+) \}}$", texts[f"{page.name}.md"], re.M
    )
    assert shown
    assert [name for name in shown if not hasattr(module, name)] == []


def test_a_rule_is_a_link_and_code_stays_code(texts):
    text = texts["language.md"]
    assert "([compute-3](../spec/decode-compute.md#compute-3))" in text
    assert [block for block in re.findall(r"```.*?```", text, re.DOTALL) if "](../" in block] == []


def test_how_it_is_called_is_shown_as_users_call_it(texts):
    text = texts["language.md"]
    assert "build_application(" in text
    assert "    _name: str" not in text
    assert "Never" not in text
    assert "self" not in re.findall(r"```python\n(\w+\([^)]*\))", text)
