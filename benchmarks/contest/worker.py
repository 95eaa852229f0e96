"""An engine's process as a contest sees it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.contest.place import Table
from benchmarks.contest.protocol import loaded, of_json
from benchmarks.resume import ROOT
from sample_data.tpcds_queries import Answer

_SECONDS_TO_START = 300.0
_SECONDS_TO_END = 20.0


class WorkerFailed(Exception):  # noqa: N818 - what an engine did, no fault of a contest
    """A question without an answer: the text says why."""


class Worker:
    """A running process of the module `engine`; what it prints besides answers is appended to `log`.

    `environment`: variables beside those of this process.
    """

    def __init__(
        self,
        engine: str,
        log: Path,
        seconds: float,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._seconds, self._log, self._waits = seconds, log, False
        with log.open("a") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", engine, *arguments],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                # Whoever interrupts a contest interrupts its engines through it.
                start_new_session=True,
            )
        try:
            self._answered(self._patience)
        except BaseException:
            self.end()
            raise

    @property
    def _patience(self) -> float:
        """Seconds for all that is not measured."""
        return max(self._seconds, _SECONDS_TO_START)

    @property
    def process(self) -> int:
        """The id of the process, below which are all others of the engine."""
        return self._process.pid

    def tables(self, tables: Sequence[Table]) -> None:
        """Lets it know these tables and no others."""
        self._ask(
            {"ask": "tables", "tables": [each.to_json() for each in tables]}, max(self._seconds, _SECONDS_TO_START)
        )

    def answer(self, contender: str, query: str) -> float:
        """Lets it run a query; the seconds that it took."""
        return float(self._ask({"ask": "answer", "contender": contender, "query": query}, self._seconds)["seconds"])

    def exchanged(self) -> int:
        """Bytes that the engine's processes have read from each other for the last query."""
        return int(self._ask({"ask": "exchanged"}, self._patience)["bytes"])

    def rows(self) -> Answer:
        """What the last query gave."""
        return of_json(self._ask({"ask": "rows"}, self._patience))

    def is_alive(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends it and every process below it."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Who waits for a question ends by itself, and Spark removes its files; who runs a query does not.
            self._process.wait(_SECONDS_TO_END if self._waits else 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        if self._process.stdin is None or not self.is_alive():
            raise WorkerFailed(self._end())
        self._waits = False
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(self._end()) from None
        return self._answered(seconds)

    def _answered(self, seconds: float) -> Mapping[str, Any]:
        if self._process.stdout is None:
            raise WorkerFailed(self._end())
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            self.end()
            raise WorkerFailed(f"no answer within {seconds:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerFailed(self._end())
        self._waits = True
        said: Mapping[str, Any] = loaded(line.decode())
        for kind in ("failed", "unsupported"):
            if kind in said:
                raise WorkerFailed(f"{kind}: {said[kind]}")
        return said

    def _end(self) -> str:
        """How it came to its end."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return f"the process ended with {self._process.wait()}: {''.join(lines)}"
