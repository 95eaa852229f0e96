"""What a contest and its engines say to each other: a JSON object a line, each question answered by one.

- `{"ask": "tables", "tables": [...]}`: know these tables by their names, and no others
- `{"ask": "answer", "contender": "stock", "query": "SELECT ..."}`: `{"seconds": 1.5}`; the rows are kept
- `{"ask": "rows"}`: types and rows of the last answer; apart, so that telling them is not measured
- `{"ask": "exchanged"}`: bytes of the last answer that the engine's own processes have read from each other
- what could not be done: `{"failed": "..."}`, or `{"unsupported": "..."}` of a query that an engine cannot plan
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
    """What answers queries over tables that it knows by name."""

    def tables(self, tables: Sequence[Table]) -> None:
        """Knows these tables and no others."""

    def answer(self, contender: str, query: str) -> Answer:
        """All rows; raises `Unsupported` where it knows no way to run the query."""

    def exchanged(self) -> int:
        """Bytes that its processes have read from each other, instead of from files, for the last answer."""


def serve(make: Callable[[], Engine]) -> None:
    """Answers what is asked on standard input until that ends; whatever else is printed goes to standard error."""
    with os.fdopen(os.dup(_STDOUT), "w", encoding="utf-8") as answers:
        os.dup2(_STDERR, _STDOUT)
        converse(make(), sys.stdin, answers)


def converse(engine: Engine, asked: TextIO, answers: TextIO) -> None:
    """Answers each line of `asked`, beginning with a greeting once the engine is there."""
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
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is its answer
            said = {"failed": reason(error)}
        _say(answers, said)


def reason(error: Exception) -> str:
    """The first line of what is wrong, and of what class it is."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:_REASON_AT_MOST]


def to_json(answer: Answer) -> dict[str, Any]:
    """As `of_json()` reads it, after the way through text."""
    return {"types": answer.types, "rows": answer.rows}


def of_json(found: Mapping[str, Any]) -> Answer:
    """The answer that `to_json()` told."""
    return Answer(tuple(found["types"]), tuple(map(tuple, found["rows"])))


def dumped(value: Any) -> str:
    """JSON in which decimals and dates stay what they are."""
    return json.dumps(value, default=_encoded)


def loaded(text: str) -> Any:
    """What `dumped()` wrote."""
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
