"""Whose directories are, said with what to do; files that a power failure cannot halve."""

from __future__ import annotations

import os

import pytest

from wallaroo.transport.private import open_to_others, write_durably


def test_a_directory_of_ones_own_is_open_to_nobody(tmp_path):
    assert open_to_others(tmp_path) is None


def test_others_who_can_write_are_kept_out_by_a_command(tmp_path):
    tmp_path.chmod(0o770)
    assert f"chmod -R go-rwx {tmp_path}" in (open_to_others(tmp_path) or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_directory_of_another_user_is_named(tmp_path):
    os.chown(tmp_path, 1234, -1)
    assert "belongs to user 1234, not to the user who runs this (0)" in open_to_others(tmp_path)


def test_a_file_is_on_disk_with_its_name_once_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before")
    synced = []

    def fsync(fd):
        synced.append((os.fstat(fd).st_ino, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_durably(path, b"after")
    # What is in it first, then its name: its folder.
    assert synced == [(path.stat().st_ino, "before"), (tmp_path.stat().st_ino, "after")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before")

    def fsync(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"after")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]
