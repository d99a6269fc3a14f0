"""A directory that others could write into is said to be one, with what to do."""

from __future__ import annotations

import os

import pytest

from wallaroo.transport.private import open_to_others


def test_a_directory_of_ones_own_is_open_to_nobody(tmp_path):
    assert open_to_others(tmp_path) is None


def test_others_who_can_write_are_kept_out_by_a_command(tmp_path):
    tmp_path.chmod(0o770)
    assert f"chmod -R go-rwx {tmp_path}" in (open_to_others(tmp_path) or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_directory_of_another_user_is_named(tmp_path):
    os.chown(tmp_path, 1234, -1)
    assert "belongs to user 1234, not to the one who runs this (0)" in open_to_others(tmp_path)
