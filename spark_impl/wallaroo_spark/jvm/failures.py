"""Why Spark has failed, in one line, as its own texts and the ends of its processes say.

Spark's own error text is a page long: its wrappers, a Python traceback inside a Java one, the
query's plan. The cause is the last error in it that wraps no other error.
"""

from __future__ import annotations

import re
import signal
import sys

from wallaroo.errors import ExtraMissingError, WallarooError

_ERROR = re.compile(
    r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception)\w*)(?:: (.*))?$", re.MULTILINE
)
_WRAPPERS = ("py4j.", "pyspark.", "org.apache.spark.", "java.util.concurrent.")
_PREFIX = re.compile(r"^(?:\[STREAM_FAILED\] )?Query \[.*?\] terminated with exception: ")
_STATE = re.compile(r"(?: SQLSTATE: \w+)+$")
_QUERY = "\n=== Streaming Query ==="
_LONGEST = 500  # characters of a cause
_OUT_OF_MEMORY = (3, 52)  # exit codes of a JVM: of Java's -XX:+ExitOnOutOfMemoryError, of Spark's
_SIGNALS = set(signal.Signals)

_MEMORY = (
    "Spark's JVM ran out of memory{}. Give it more, with --conf spark.driver.memory=4g, or take "
    "smaller batches, with --batch-bytes"
)
_PYTHON = (
    "Workers need Python {}.{} with this engine's packages: leave PYSPARK_PYTHON unset on one "
    "machine; on a cluster set it to such a Python that is on each machine"
).format(*sys.version_info)
_KILLED = "killed from outside (kill -9), or by the kernel for want of memory (see dmesg)"
_AGAIN = "Start the run again; with --checkpoint it goes on where it was"
_TOO_MUCH = r"TooMuchError: (\d+) of (\d+) offsets"
_LACKS = (ModuleNotFoundError.__name__, ExtraMissingError.__name__)
_WORKER_DIED = r"Python worker (?:exited unexpectedly|crashed)"
_PLANNER_DIED = ("Broken pipe", "Connection reset", "EOFException")

# What Spark says, and what is said of it; {} is what the group of the expression holds.
_KNOWN = (
    (
        r"Cannot run program (\"[^\"]+\")",
        f"Spark cannot run {{}} for its Python workers. {_PYTHON}",
    ),
    (
        r"Error from python worker:\s*([^\n]+)",
        f"Spark's Python workers do not start: {{}}. {_PYTHON}",
    ),
    (
        r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: ([\d.]+)",
        f"Spark's workers run Python {{}}. {_PYTHON}",
    ),
    (
        r"INVALID_DRIVER_MEMORY\S*\] [^\n]*?memory: ([^\n.]+)",
        "Spark's JVM has too little memory: {} bytes. Give it more, with --conf "
        "spark.driver.memory=1g",
    ),
    (
        r"INVALID_EXECUTOR_MEMORY\S*\] [^\n]*?memory: ([^\n.]+)",
        "Spark's executors have too little memory: {} bytes. Give them more, with --conf "
        "spark.executor.memory=1g",
    ),
    (
        r"Master removed our application: (\w+)",
        "Spark's master has ended the run ({}): its executors failed again and again. The master's "
        "page has their logs; likely causes are --conf spark.executor.memory and "
        "spark.executor.extraJavaOptions",
    ),
    (
        _WORKER_DIED,
        "a Python worker process of Spark's died, in each attempt at the same input, and in no "
        f"call of user code: it was {_KILLED}. Spark does not say by what signal. {_AGAIN}",
    ),
)


class SparkStartError(WallarooError):
    """The JVM did not start, or Spark did not start in it."""


def text_of(error: BaseException) -> str:
    """Return the text of an exception of Spark's; Py4J asks the JVM for it, which may be gone."""
    try:
        return str(error).strip() or type(error).__name__
    except Exception:  # noqa: BLE001 - whatever Py4J raises if the JVM is gone
        return type(error).__name__


def worker_died(error: BaseException) -> bool:
    """Whether Spark gave up because Python workers died."""
    return re.search(_WORKER_DIED, text_of(error)) is not None


def too_much(error: BaseException) -> tuple[int, int] | None:
    """Return how many of a task's offsets it may fetch, if Spark gave up because of that."""
    match = re.search(_TOO_MUCH, text_of(error))
    return match and (int(match[1]), int(match[2]))


def cause_of(text: str) -> tuple[str, str]:
    """Return the class of the cause in an error text, without its package, and what it says."""
    text = text.partition(_QUERY)[0].strip()
    errors = _ERROR.findall(text)
    causes = [error for error in errors if not error[0].startswith(_WRAPPERS)] or errors[-1:]
    causes = causes or [("", _PREFIX.sub("", text.partition("\n")[0]))]
    kind, cause = causes[-1]
    cause = _STATE.sub("", cause.strip()).rstrip(".")[:_LONGEST]
    return re.split(r"[.$]", kind)[-1], cause


def explained(text: str) -> str | None:
    """Return what is said of an error text, if it tells of Spark's processes; else `None`."""
    text = text.partition(_QUERY)[0]
    for expression, said in _KNOWN:
        if match := re.search(expression, text):
            return said.format(*match.groups())
    kind, cause = cause_of(text)
    if kind in _LACKS:
        return f"the Python of Spark's workers lacks a package: {cause}. {_PYTHON}"
    if kind == "OutOfMemoryError":
        return _MEMORY.format(f": {cause}")
    if not kind and cause.startswith(_PLANNER_DIED):
        return (
            "the Python process in which Spark plans micro-batches died: it was "
            f"{_KILLED}. Spark does not say by what signal. {_AGAIN}"
        )
    return None


def end_of_jvm(pid: int, code: int) -> str:
    """Return what is said of a JVM that has ended.

    Args:
        pid: its process id.
        code: its exit code, as `subprocess` has it: below 0 if a signal has ended it.
    """
    if code in _OUT_OF_MEMORY:
        return _MEMORY.format("")
    caught = code - 128 if code > 128 else -code  # Java ends in order at some signals
    if caught <= 0:
        return f"Spark's JVM (process {pid}) ended by itself, with exit code {code}. {_AGAIN}"
    how = signal.Signals(caught).name if caught in _SIGNALS else f"signal {caught}"
    who = f": it was {_KILLED}" if caught == signal.SIGKILL else ""
    return f"Spark's JVM (process {pid}) died of {how}{who}. {_AGAIN}"
