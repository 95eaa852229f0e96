"""A server of `scanprune serve` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pruning.results.verdict import NOTHING_TO_PRUNE

_CHECKOUT = Path(__file__).parents[2]
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Server:
    """The process of a server, the text by which clients connect, and the file of its standard error."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def told(self) -> list[str]:
        """The lines about queries with a join so far: what each one reads, or why nothing is skipped."""
        lines = self.log.read_text("utf-8").splitlines()
        return [line for line in lines if line.startswith(("reads ", "nothing ")) and line != NOTHING_TO_PRUNE]


@contextmanager
def server(kind: str, folder: Path, *arguments: str) -> Iterator[Server]:
    """A server on a free port; it is interrupted at the end, and has to end with its Java process."""
    log = folder / f"{kind}.err"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "connectors.cli.main", "serve", kind, "--port", "0", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(_CHECKOUT), "XDG_CACHE_HOME": str(folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Serving at "), log.read_text("utf-8")
        yield Server(process, first.split()[2].rstrip(";"), log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()  # type: ignore[union-attr]


def gone(processes: list[int], seconds: float = 20.0) -> bool:
    """True once none of the processes runs."""
    until = time.monotonic() + seconds
    while any(Path("/proc", str(each)).exists() for each in processes):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
