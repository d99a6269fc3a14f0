"""What a process does wrong, and how much of it is enough."""

from __future__ import annotations

from wallaroo_conformance.judge.differences import NoMoreAnswersError
from wallaroo_conformance.pipe.process import LineProcess

_LONG = 5
"""What takes longer than a case may take counts as so many faults."""
_MOST_IN_A_ROW = 20
"""Faults of cases that come one after the other: the next cases would most probably fail too."""
_MOST_IN_A_SEARCH = 50
"""Faults until no more cases are looked for; the rest is for reducing those that have failed."""
_MOST = 100


class Fault(Exception):  # noqa: N818 - it becomes a case's answer
    """What a process did wrong, with the end of its standard error.

    Args:
        process: the process; `None`: there is none.
        text: what it did.
        long: whether a case alone has taken longer than it may.
    """

    def __init__(self, process: LineProcess | None, text: str, *, long: bool = False) -> None:
        super().__init__(text)
        self.tail = "" if process is None else process.tail()
        self.weight = _LONG if long else 1


class Faults:
    """The faults of one engine, over all its jobs.

    Args:
        name: the engine's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._all = 0
        self._in_a_row = 0
        self._cases = 0  # that have failed one after the other
        self._last = ""

    def add(self, fault: Fault, *, alone: bool) -> None:
        """Count a fault.

        Args:
            fault: the fault.
            alone: whether one case is to blame, since it was alone in its job.

        Raises:
            NoMoreAnswersError: it is the last one that an engine may have.
        """
        self._all += fault.weight
        self._last = str(fault)
        if alone:
            self._in_a_row += fault.weight
            self._cases += 1
        if self._all >= _MOST:
            why = f"{self._name} was given up after too many faults; the last one: {fault}"
            raise NoMoreAnswersError(why, gone=True)

    def forget_row(self) -> None:
        """Begin to count anew what fails one after the other: a case has not failed."""
        self._in_a_row = self._cases = 0

    def end_search(self) -> None:
        """Let no more cases be run if there were too many faults.

        Raises:
            NoMoreAnswersError: there were.
        """
        if self._in_a_row >= _MOST_IN_A_ROW:
            failed = f"failed on {self._cases} cases one after the other"
        elif self._all >= _MOST_IN_A_SEARCH:
            failed = "failed too often"
        else:
            return
        why = f"{self._name} {failed}, and was given no more; the last time: {self._last}"
        raise NoMoreAnswersError(why)
