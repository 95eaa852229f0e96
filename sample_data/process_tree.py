"""What a process and all processes below it have used, as Linux accounts for it in `/proc`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# Fields of `stat` behind the program's name.
_PARENT, _TIMES = 1, slice(11, 15)
# In a mask of signals the lowest bit is the first one's.
_CHILD_HAS_ENDED = 1 << (getattr(signal, "SIGCHLD", 17) - 1)
# Sets VmHWM, the most memory that was resident, to what is resident.
_RESET_PEAK = "5"


def is_accounted() -> bool:
    """False on systems that keep no such account."""
    return (_PROC / "self" / "io").exists()


@dataclass(frozen=True, slots=True)
class Process:
    """What one process has used by itself, with its ended children unless it ignores their ends."""

    parent: int
    bytes_read: int
    cpu_seconds: float
    ignores_children: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes used since it began.

    - `bytes_read`: by every read, whether a disk, the page cache or another process gave them
    - `cpu_seconds`: of user and system
    - `peak_bytes`: the sum of what each process held at most, shared pages counted in each; since `reset_peaks()`
    - `processes`: those that it is the sum of, by their ids
    """

    bytes_read: int
    cpu_seconds: float
    peak_bytes: int
    processes: Mapping[int, Process] = field(default_factory=dict, compare=False)

    def since(self, earlier: Usage) -> Usage:
        """What was used between two readings; the peak stays the later one's.

        What a process has used counts with its parent once that has waited for it, and with nobody if the parent
        ignores its end, as Spark's daemon of Python workers does: then only what it used between the readings is lost.
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
    """A reading."""
    while True:
        processes = {process: each for process in below(root) if (each := _process(process)) is not None}
        peak = sum(map(peak_bytes, processes))
        # Of one that has ended on the way, or begun, a part may stand with its parent and a part be missing.
        if processes.keys() == set(below(root)):
            found = processes.values()
            return Usage(
                sum(each.bytes_read for each in found), sum(each.cpu_seconds for each in found), peak, processes
            )


def reset_peaks(root: int) -> bool:
    """Lets peaks begin anew; False where the system refuses that."""
    try:
        for process in below(root):
            (_PROC / str(process) / "clear_refs").write_text(_RESET_PEAK, encoding="utf-8")
    except PermissionError:
        return False
    except (FileNotFoundError, ProcessLookupError):
        # One has ended meanwhile, so it is asked for those that are there.
        return reset_peaks(root)
    return True


def below(root: int) -> list[int]:
    """The process and all that descend from it."""
    parents = dict(_parents())
    return [process for process in parents if _is_below(process, root, parents)]


def bytes_read(process: int) -> int:
    """By one process and its ended children; 0 if it is not there."""
    for line in _lines(process, "io"):
        name, _, count = line.partition(":")
        if name == "rchar":
            return int(count)
    return 0


def cpu_seconds(root: int) -> float:
    """Of user and system, by a process and all below it."""
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
    """The most memory of one process that was resident since `reset_peaks()`; 0 if it is not there."""
    return _kibibytes(process, "VmHWM")


def resident_bytes(process: int) -> int:
    """The memory of one process that is resident; 0 if it is not there."""
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
    # The program's name, in parentheses, may hold anything, also a line's end.
    return "\n".join(_lines(process, "stat")).rpartition(")")[2].split()


def _lines(process: int, account: str) -> list[str]:
    """None if the process is not there."""
    try:
        return (_PROC / str(process) / account).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
