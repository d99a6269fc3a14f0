"""A checkpoint at a URL, on any file system that Spark can write: ``hdfs:``, ``s3a:`` and others.

Spark writes its part there itself. The other files of a checkpoint are small: the identity, the
layout, what a restart must know. A run has copies of these and of Spark's own small files in a
temporary directory, where they are read and checked like those of a checkpoint on a disk; what the
run writes is *published*, before anything depends on it. So nothing that a restart needs is on the
driver's disk, and the input log, which is, cannot be part of such a checkpoint: all sources must
be topics.

Files are read and written by what Spark uses for its own, with the settings of its session.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from wallaroo.errors import UsageError, WallarooError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import INPUT, LOCK
from wallaroo.transport.identity import IDENTITY, CheckpointError
from wallaroo.transport.private import make_private
from wallaroo_spark.jvm.failures import cause_of, text_of

FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark's setting of how it writes the files of a checkpoint."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_OURS = ("*", "spark/*")  # and Spark's, which say how far it is and where its schemas are
_SPARKS = ("spark/offsets/*", "spark/commits/*", "spark/state/*/_metadata/v2/*")
_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


class CheckpointUrl(str):
    """A checkpoint's place that is no path of this machine."""

    __slots__ = ()


def checkpoint_place(text: str) -> Path | CheckpointUrl:
    """Return where a checkpoint is: a directory, which ``file:`` names too, or a URL."""
    if text.startswith("file:/"):
        return Path(re.sub("^file:/+", "/", text))
    return CheckpointUrl(text.rstrip("/")) if _URL.match(text) else Path(text)


class Remote:
    """A checkpoint at a URL, and this run's copy of its small files.

    Args:
        spark: the session that reads and writes it.
        url: the checkpoint's.
        copy: a directory for the copy, which does not exist yet.
        resume: whether there must be a checkpoint.
        chosen: whether the user has chosen how Spark writes files.

    Attributes:
        url: the whole URL, as Spark writes it into its files.

    Raises:
        CheckpointError: it cannot be read.
        UsageError: there is none, and there must be.
    """

    def __init__(
        self, spark: SparkSession, url: CheckpointUrl, copy: Path, *, resume: bool, chosen: bool
    ) -> None:
        jvm: Any = spark.sparkContext._jvm
        if not chosen:
            # Ours is for a local disk. Spark's own choice replaces files where renaming does not.
            spark.conf.unset(FILE_MANAGER)
        self._path = jvm.org.apache.hadoop.fs.Path
        self._copy = copy
        self._published: dict[str, bytes] = {}
        state: Any = spark._jsparkSession.sessionState()
        with self._telling(str(url)):
            path, conf = self._path(url), state.newHadoopConf()
            self._system = path.getFileSystem(conf)
            self.url = self._system.makeQualified(path).toString()
            self._files = getattr(jvm, _MANAGERS).create(path, conf)
            self._fetch()
        if resume and IDENTITY not in self._published:
            raise UsageError(
                f"{url} holds no checkpoint: it has no {IDENTITY}. Look at the URL; to begin anew, "
                "leave --resume and --skip-record out"
            )

    def publish(self) -> None:
        """Write what has changed in the copy; it is there when this returns.

        Raises:
            CheckpointError: it cannot be written.
        """
        for pattern in (*_OURS, *_SPARKS):
            for path in sorted(self._copy.glob(pattern)):
                name = str(path.relative_to(self._copy))
                if name in (LOCK, INPUT) or not path.is_file():
                    continue
                data = path.read_bytes()
                if self._published.get(name) != data:
                    self._write(name, data)
                    self._published[name] = data

    def size(self) -> int:
        """Return the bytes of all that is there; 0 if nobody can tell now."""
        with contextlib.suppress(Py4JError):
            return int(self._system.getContentSummary(self._at("")).getLength())
        return 0

    def clear_unbegun(self) -> None:
        """Delete what a run has left that died while it planned its first batch.

        Raises:
            CheckpointError: it cannot be deleted.
        """
        for name in ("offsets", "commits", "state"):
            with self._telling(f"{self.url}/spark"):
                self._files.delete(self._at(f"spark/{name}"))

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Let errors inside the block name the URL, not the copy.

        Raises:
            WallarooError: those of the block.
        """
        try:
            yield
        except WallarooError as error:
            error.args = tuple([self.renamed(str(one)) for one in error.args])
            raise

    def renamed(self, text: str) -> str:
        """Return a text that names the URL in place of the copy."""
        return text.replace(str(self._copy), self.url)

    def _fetch(self) -> None:
        make_private(self._copy)
        for pattern in (*_OURS, *_SPARKS):
            for name in self._names(pattern.split("/")):
                stream = self._files.open(self._at(name))
                try:
                    self._published[name] = bytes(stream.readAllBytes())
                finally:
                    stream.close()
                path = self._copy / name
                make_private(path.parent)
                path.write_bytes(self._published[name])

    def _names(self, pattern: list[str], folder: str = "") -> Iterator[str]:
        """Yield the names of the files that match the parts of a pattern."""
        first, *rest = pattern
        there = [folder + first] if first != "*" else None
        for name, is_folder in self._entries(folder) if there is None else [(there[0], True)]:
            if rest and is_folder:
                yield from self._names(rest, f"{name}/")
            elif not rest and not is_folder and not name.rpartition("/")[2].startswith("."):
                yield name

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield what is in a folder, which need not exist: name, and whether it is a folder."""
        where = self._at(folder)
        if self._files.exists(where):
            for status in self._files.list(where):
                yield folder + status.getPath().getName(), bool(status.isDirectory())

    def _write(self, name: str, data: bytes) -> None:
        place = f"{self.url}/{name}"
        with self._telling(place):
            where = self._at(name)
            self._files.mkdirs(where.getParent())
            stream = self._files.createAtomic(where, True)
            stream.write(data)
            stream.close()
            written = self._files.open(where)
            try:
                same = bytes(written.readAllBytes()) == data
            finally:
                written.close()
        if not same:
            raise CheckpointError(
                f"{place} was not replaced: this file system does not replace a file that is there "
                f"by renaming. --conf {FILE_MANAGER}=CLASS names what can"
            )

    def _at(self, name: str) -> Any:
        return self._path(f"{self.url}/{name}".rstrip("/"))

    @contextlib.contextmanager
    def _telling(self, place: str) -> Iterator[None]:
        """Raise an error of the file system as one line.

        Raises:
            CheckpointError: there was one.
        """
        try:
            yield
        except Py4JJavaError as error:
            kind, cause = cause_of(text_of(error))
            raise CheckpointError(
                f"{place} cannot be read or written: {': '.join(filter(None, (kind, cause)))}"
            ) from error


def refuse_other_sources(application: Application, url: str, record: Path | None) -> None:
    """Refuse a run whose input log would be on the driver's disk, which may be lost.

    Raises:
        UsageError: it has sources that are not topics, or is recorded.
    """
    others = [
        name
        for name, source in application.sources.items()
        if not isinstance(source.config, KafkaSourceConfig)
    ]
    why = f"source {others[0]!r} is not a topic of Kafka" if others else "it is recorded (--record)"
    if others or record is not None:
        raise UsageError(
            f"the checkpoint {url} cannot be that of this run: {why}, so its input log is on the "
            "driver's disk, and what that has received is lost with it. Name a directory"
        )
