"""Faults of Spark's Python workers, each of which strikes once, in the first worker that reaches its place.

An armed fault is a file; the one process that succeeds in removing the file has the fault. `faulty_daemon.py` inserts
calls of `strike()` into the code of workers.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyarrow as pa

FOLDER = "SCANPRUNE_FAULTS"
# Long enough for speculative execution to repeat the task on another executor.
SLOW_SECONDS = 40.0
# A worker that kills its executor may live a little longer than the executor.
_SECONDS_TO_END = 60.0


class Fault(Enum):
    """The kinds of faults."""

    RAISES = "raises"
    WORKER_ENDS = "worker-ends"
    EXECUTOR_ENDS = "executor-ends"
    SLEEPS = "sleeps"


class Place(Enum):
    """The places of faults: at the end of a build, and after the rows of a scan."""

    KEYS = "keys"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Faults:
    """The armed faults of a cluster, as files in a folder."""

    folder: Path

    def arm(self, place: Place, fault: Fault) -> None:
        """Arms a fault, which will strike once."""
        _file(self.folder, place, fault).touch()

    def disarm(self) -> list[str]:
        """Disarms all faults; returns the names of those that did not strike."""
        left = sorted(each.name for each in self.folder.iterdir())
        for name in left:
            (self.folder / name).unlink(missing_ok=True)
        return left


def strike(place: Place) -> None:
    """Raises or executes the fault that is armed for this place, if any; runs in a Python worker."""
    folder = os.environ.get(FOLDER)
    for fault in Fault if folder else ():
        if _is_claimed(_file(Path(folder or ""), place, fault)):
            _happen(fault)


def rows_then_strike(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A function for `mapInArrow` that passes all rows on, then calls `strike()`."""
    yield from batches
    strike(Place.ROWS)


def _file(folder: Path, place: Place, fault: Fault) -> Path:
    return folder / f"{place.value}-{fault.value}"


def _is_claimed(file: Path) -> bool:
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True


def _happen(fault: Fault) -> None:
    match fault:
        case Fault.RAISES:
            raise OSError("a fault that was asked for")
        case Fault.WORKER_ENDS:
            os.kill(os.getpid(), signal.SIGKILL)
        case Fault.EXECUTOR_ENDS:
            os.kill(_parent(os.getppid()), signal.SIGKILL)
            time.sleep(_SECONDS_TO_END)
        case Fault.SLEEPS:
            time.sleep(SLOW_SECONDS)
        case _:
            raise ValueError(f"there is no fault {fault!r}")


def _parent(process: int) -> int:
    """The parent of a process. The parent of a worker is Spark's Python daemon, whose parent is the executor."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])
