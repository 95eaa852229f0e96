"""Resource usage of a process and all of its descendants, from Linux's `/proc`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# Fields of `stat` after the name of the program.
_PARENT, _TIMES = 1, slice(11, 15)
# In a signal mask the lowest bit stands for signal 1.
_CHILD_HAS_ENDED = 1 << (getattr(signal, "SIGCHLD", 17) - 1)
# Resets VmHWM, the peak of resident memory, to the current resident memory.
_RESET_PEAK = "5"


def is_accounted() -> bool:
    """True on systems that have `/proc/<process>/io`."""
    return (_PROC / "self" / "io").exists()


@dataclass(frozen=True, slots=True)
class Process:
    """Resource usage of one process and of its ended children, unless the process ignores SIGCHLD."""

    parent: int
    bytes_read: int
    cpu_seconds: float
    ignores_children: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Resource usage of a tree of processes since its start.

    - `bytes_read`: bytes of all reads, from a disk, the page cache or another process
    - `cpu_seconds`: user and system time
    - `peak_bytes`: the sum of the peaks of all processes since `reset_peaks()`; shared pages count in each process
    - `processes`: the processes of the sum, by their ids
    """

    bytes_read: int
    cpu_seconds: float
    peak_bytes: int
    processes: Mapping[int, Process] = field(default_factory=dict, compare=False)

    def since(self, earlier: Usage) -> Usage:
        """The usage between two readings; the peak is that of the later reading.

        Linux adds the usage of an ended process to its parent once the parent has waited for it. If the parent ignores
        SIGCHLD, as Spark's daemon of Python workers does, the usage is lost. Then this method adds the usage of the
        earlier reading back, so that only the usage since the earlier reading is lost.
        """
        lost = [each for each in earlier.processes.items() if self._has_lost(*each, earlier.processes)]
        return Usage(
            self.bytes_read - earlier.bytes_read + sum(each.bytes_read for _, each in lost),
            self.cpu_seconds - earlier.cpu_seconds + sum(each.cpu_seconds for _, each in lost),
            self.peak_bytes,
        )

    def _has_lost(self, process: int, found: Process, earlier: Mapping[int, Process]) -> bool:
        parent = earlier.get(found.parent)
        return process not in self.processes and parent is not None and parent.ignores_children


def usage(root: int) -> Usage:
    """A reading of the usage of `root` and its descendants."""
    while True:
        processes = {process: each for process in below(root) if (each := _process(process)) is not None}
        peak = sum(map(peak_bytes, processes))
        # A process that started or ended meanwhile may be counted twice or not at all, so the reading is repeated.
        if processes.keys() == set(below(root)):
            found = processes.values()
            return Usage(
                sum(each.bytes_read for each in found), sum(each.cpu_seconds for each in found), peak, processes
            )


def reset_peaks(root: int) -> bool:
    """Resets the peaks of resident memory; returns False if the system does not permit it."""
    try:
        for process in below(root):
            (_PROC / str(process) / "clear_refs").write_text(_RESET_PEAK, encoding="utf-8")
    except PermissionError:
        return False
    except (FileNotFoundError, ProcessLookupError):
        # A process has ended meanwhile, so the reset is repeated for those that remain.
        return reset_peaks(root)
    return True


def below(root: int) -> list[int]:
    """The ids of a process and all of its descendants."""
    parents = dict(_parents())
    return [process for process in parents if _is_below(process, root, parents)]


def bytes_read(process: int) -> int:
    """Bytes read by one process and its ended children; 0 if the process does not exist."""
    for line in _lines(process, "io"):
        name, _, count = line.partition(":")
        if name == "rchar":
            return int(count)
    return 0


def cpu_seconds(root: int) -> float:
    """User and system time of a process and all of its descendants."""
    return usage(root).cpu_seconds


def _process(process: int) -> Process | None:
    fields = _stat(process)
    if not fields:
        return None
    ignored = next((line.split()[1] for line in _lines(process, "status") if line.startswith("SigIgn:")), "0")
    return Process(
        int(fields[_PARENT]),
        bytes_read(process),
        sum(map(int, fields[_TIMES])) / _TICKS_PER_SECOND,
        bool(int(ignored, 16) & _CHILD_HAS_ENDED),
    )


def peak_bytes(process: int) -> int:
    """The peak of resident memory of one process since `reset_peaks()`; 0 if the process does not exist."""
    return _kibibytes(process, "VmHWM")


def resident_bytes(process: int) -> int:
    """The resident memory of one process; 0 if the process does not exist."""
    return _kibibytes(process, "VmRSS")


def _kibibytes(process: int, name: str) -> int:
    for line in _lines(process, "status"):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            yield int(folder.name), int(fields[_PARENT])


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor


def _stat(process: int) -> list[str]:
    # The name of the program, in parentheses, may contain any character, even a newline.
    return "\n".join(_lines(process, "stat")).rpartition(")")[2].split()


def _lines(process: int, account: str) -> list[str]:
    """The lines of a file in `/proc/<process>`; empty if the process does not exist."""
    try:
        return (_PROC / str(process) / account).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
