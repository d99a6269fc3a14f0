"""Whose directories are, said with what to do; files that a power failure cannot halve."""

import os

import pytest

from wallaroo.transport.private import open_to_others, write_durably


def test_a_directory_of_ones_own_is_open_to_nobody(tmp_path):
    assert open_to_others(tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_directory_of_another_user_is_named(tmp_path):
    os.chown(tmp_path, 1234, -1)
    assert "belongs to user 1234, not to the user who runs this (0)" in open_to_others(tmp_path)


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before")

    def fsync(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"after")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]
