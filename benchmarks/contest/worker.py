"""A worker: the process of one engine, and the requests of a contest to it."""

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


class WorkerFailed(Exception):  # noqa: N818 - a result of the engine, not an error of the contest
    """A failed request, with the reason as its text."""


class Worker:
    """A running process of the module `engine`; its output other than answers is appended to `log`.

    `environment`: variables in addition to those of this process.
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
            self._process = subprocess.Popen(  # noqa: S603 - a module of this package
                [sys.executable, "-m", engine, *arguments],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                # A new session, so that Ctrl-C reaches only the contest, which then ends its engines.
                start_new_session=True,
            )
        try:
            self._answered(self._patience)
        except BaseException:
            self.end()
            raise

    @property
    def _patience(self) -> float:
        """The time limit in seconds of requests that are not measured."""
        return max(self._seconds, _SECONDS_TO_START)

    @property
    def process(self) -> int:
        """The id of the process; all other processes of the engine descend from it."""
        return self._process.pid

    def tables(self, tables: Sequence[Table]) -> None:
        """Replaces the engine's registered tables."""
        self._ask(
            {"ask": "tables", "tables": [each.to_json() for each in tables]}, max(self._seconds, _SECONDS_TO_START)
        )

    def answer(self, contender: str, query: str) -> float:
        """Runs a query and returns its seconds."""
        return float(self._ask({"ask": "answer", "contender": contender, "query": query}, self._seconds)["seconds"])

    def exchanged(self) -> int:
        """Bytes that processes of the engine have read from each other for the last query."""
        return int(self._ask({"ask": "exchanged"}, self._patience)["bytes"])

    def rows(self) -> Answer:
        """The answer to the last query."""
        return of_json(self._ask({"ask": "rows"}, self._patience))

    def is_alive(self) -> bool:
        """False if the process has ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Ends the process and all of its descendants."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # An idle engine ends by itself when its input closes, and Spark removes its files. A busy engine does not.
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
        """The exit code of the process and the last line of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return f"the process ended with {self._process.wait()}: {''.join(lines)}"
