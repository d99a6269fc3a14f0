"""Errors: one base, and a text that says rule and step."""

import pytest

import wallaroo
from wallaroo import errors


def test_errors_have_one_base():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(kinds) > 4
    assert all(issubclass(kind, errors.WallarooError) for kind in kinds)
    assert issubclass(errors.WallarooError, Exception)


@pytest.mark.parametrize("name", [name for name in wallaroo.__all__ if name[0].isupper()])
def test_errors_and_classes_are_where_the_package_says(name):
    assert getattr(wallaroo, name).__name__ == name
