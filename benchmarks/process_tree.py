"""What a process and all processes below it have used, as Linux accounts for it in `/proc`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# Fields of `stat` behind the program's name.
_PARENT, _TIMES = 1, slice(11, 15)
# Sets VmHWM, the most memory that was resident, to what is resident.
_RESET_PEAK = "5"


def is_accounted() -> bool:
    """False on systems that keep no such account."""
    return (_PROC / "self" / "io").exists()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes used since it began.

    - `bytes_read`: by every read, whether a disk or the page cache gave them
    - `cpu_seconds`: of user and system
    - `peak_bytes`: the sum of what each process held at most, shared pages counted in each; since `reset_peaks()`
    """

    bytes_read: int
    cpu_seconds: float
    peak_bytes: int

    def since(self, earlier: Usage) -> Usage:
        """What was used between two readings; the peak stays the later one's."""
        return Usage(self.bytes_read - earlier.bytes_read, self.cpu_seconds - earlier.cpu_seconds, self.peak_bytes)


def usage(root: int) -> Usage:
    """A reading. What a process used that has ended counts with the one that waited for it."""
    found = below(root)
    return Usage(sum(map(bytes_read, found)), sum(map(_cpu_seconds, found)), sum(map(_peak, found)))


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


def _cpu_seconds(process: int) -> float:
    fields = _stat(process)
    return sum(map(int, fields[_TIMES])) / _TICKS_PER_SECOND if fields else 0.0


def _peak(process: int) -> int:
    for line in _lines(process, "status"):
        if line.startswith("VmHWM:"):
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
