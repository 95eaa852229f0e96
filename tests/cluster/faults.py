"""Failures of Spark's Python workers, each of which strikes once wherever it is met first.

An armed fault is a file, which just one process can remove. Workers run `strike()` at the places that
`faulty_daemon.py` puts it.
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
# A task that sleeps so long is repeated elsewhere before it ends.
SLOW_SECONDS = 40.0
# Whoever ends its own parent may live a little longer.
_SECONDS_TO_END = 60.0


class Fault(Enum):
    """What happens."""

    RAISES = "raises"
    WORKER_ENDS = "worker-ends"
    EXECUTOR_ENDS = "executor-ends"
    SLEEPS = "sleeps"


class Place(Enum):
    """Where: behind the first part of a file in a scan by pyarrow, at the end of a build's keys, behind rows."""

    SCAN = "scan"
    KEYS = "keys"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Faults:
    """Those of a cluster, which its workers look for in a folder."""

    folder: Path

    def arm(self, place: Place, fault: Fault) -> None:
        """Lets it strike once."""
        _file(self.folder, place, fault).touch()

    def disarm(self) -> list[str]:
        """The names of those that did not strike, which they will not any more."""
        left = sorted(each.name for each in self.folder.iterdir())
        for name in left:
            (self.folder / name).unlink(missing_ok=True)
        return left


def strike(place: Place) -> None:
    """In a worker: lets a fault happen that is armed for this place, if there is one."""
    folder = os.environ.get(FOLDER)
    for fault in Fault if folder else ():
        if _is_claimed(_file(Path(folder or ""), place, fault)):
            _happen(fault)


def rows_then_strike(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, handed over before a fault strikes: for `mapInArrow`."""
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
    """A worker's parent is Spark's daemon in Python, and the parent of that is the executor."""
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])
