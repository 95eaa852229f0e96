"""The protocol between a contest and its engines: one JSON object a line, one response for each request.

- `{"ask": "tables", "tables": [...]}`: replace the registered tables
- `{"ask": "answer", "contender": "stock", "query": "SELECT ..."}`: the response is `{"seconds": 1.5}`; rows are kept
- `{"ask": "rows"}`: types and rows of the last answer; a separate request, so that sending rows is not measured
- `{"ask": "exchanged"}`: bytes of the last answer that processes of the engine have read from each other
- the response to a failed request: `{"failed": "..."}`, or `{"unsupported": "..."}` if the engine cannot plan a query
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Protocol, TextIO

from benchmarks.contest.place import Table
from sample_data.tpcds_queries import Answer

_STDOUT, _STDERR = 1, 2
_REASON_AT_MOST = 300


class Unsupported(Exception):  # noqa: N818 - nothing went wrong
    """A query that an engine cannot plan, and why."""


class Engine(Protocol):
    """An engine that answers queries over registered tables."""

    def tables(self, tables: Sequence[Table]) -> None:
        """Replaces the registered tables."""

    def answer(self, contender: str, query: str) -> Answer:
        """All rows of a query; raises `Unsupported` if the engine cannot plan it."""

    def exchanged(self) -> int:
        """Bytes of the last answer that processes of the engine read from each other instead of from files."""


def serve(make: Callable[[], Engine]) -> None:
    """Answers requests on standard input until it ends; other output of the process goes to standard error."""
    with os.fdopen(os.dup(_STDOUT), "w", encoding="utf-8") as answers:
        os.dup2(_STDERR, _STDOUT)
        converse(make(), sys.stdin, answers)


def converse(engine: Engine, asked: TextIO, answers: TextIO) -> None:
    """Sends a greeting once the engine is made, then answers each line of `asked`."""
    last = Answer((), ())
    _say(answers, {"ready": True})
    for line in asked:
        ask = json.loads(line)
        try:
            match ask["ask"]:
                case "tables":
                    engine.tables([Table.of_json(each) for each in ask["tables"]])
                    said: Mapping[str, Any] = {"tables": len(ask["tables"])}
                case "answer":
                    began = time.perf_counter()
                    last = engine.answer(ask["contender"], ask["query"])
                    said = {"seconds": time.perf_counter() - began}
                case "rows":
                    said = to_json(last)
                case "exchanged":
                    said = {"bytes": engine.exchanged()}
                case other:
                    said = {"failed": f"there is no question {other!r}"}
        except Unsupported as error:
            said = {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - any error of an engine is its answer
            said = {"failed": reason(error)}
        _say(answers, said)


def reason(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_REASON_AT_MOST]


def to_json(answer: Answer) -> dict[str, Any]:
    """The object that `of_json()` reads, once it has been written by `dumped()` and read by `loaded()`."""
    return {"types": answer.types, "rows": answer.rows}


def of_json(found: Mapping[str, Any]) -> Answer:
    """The answer of an object of `to_json()`."""
    return Answer(tuple(found["types"]), tuple(map(tuple, found["rows"])))


def dumped(value: Any) -> str:
    """JSON text that keeps the types of decimals and dates."""
    return json.dumps(value, default=_encoded)


def loaded(text: str) -> Any:
    """The value of a text that `dumped()` wrote."""
    return json.loads(text, object_hook=_decoded)


def _say(answers: TextIO, said: Mapping[str, Any]) -> None:
    answers.write(dumped(said) + "\n")
    answers.flush()


def _encoded(value: Any) -> dict[str, str]:
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case date():
            return {"date": value.isoformat()}
        case _:
            raise TypeError(f"Cannot tell a value of type {type(value).__name__!r}: no form of JSON is known for it")


def _decoded(found: dict[str, Any]) -> Any:
    match found:
        case {"decimal": str(digits)}:
            return Decimal(digits)
        case {"date": str(day)}:
            return date.fromisoformat(day)
        case _:
            return found
