"""A local Spark standalone cluster for the time of a block: a master, two workers, and their executors."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pruning.errors import EnvironmentProblem
from sample_data.process_tree import below

_ROOT = Path(__file__).resolve().parents[2]
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_SECONDS_TO_END = 30.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: the URL of its master, and the ids of its processes by name."""

    master: str
    processes: Mapping[str, int]
    supervisor: int

    def executors(self) -> list[int]:
        """The ids of all running executors, sorted."""
        workers = [process for name, process in self.processes.items() if name.startswith("worker")]
        found = {process for worker in workers for process in below(worker) if _EXECUTOR in _command(process)}
        return sorted(found)

    def kill_executors(self) -> list[int]:
        """Kills all executors at once by SIGKILL; returns their ids."""
        found = self.executors()
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return found

    def everything(self) -> set[int]:
        """The ids of all processes of the cluster, including the supervisor."""
        return set(below(self.supervisor))


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """A cluster without an application; its processes end with the block, and with this process.

    Logs are written to `folder`. Raises `EnvironmentProblem` if the cluster does not start.
    """
    with (folder / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.supervisor", str(folder)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # A new session, so that Ctrl-C does not reach the cluster, which is needed until the block has ended.
            start_new_session=True,
        )
    try:
        yield _said(process, folder)
    finally:
        _end(process)


def is_running(process: int) -> bool:
    """True for a process that exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _said(process: subprocess.Popen[str], folder: Path) -> Cluster:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        process.wait()
        last = (folder / "supervisor.log").read_text(errors="replace").strip().splitlines() or ["no word of why"]
        raise EnvironmentProblem(f"Cannot start a cluster: {last[-1]}")
    found = json.loads(line)
    return Cluster(found["master"], found["processes"], process.pid)


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_END)
    for each in below(process.pid) if process.poll() is None else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
