"""The report of a failing random query: how to run it again, and a smaller query that fails alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tests.oracle.draws import Draws, simplest
from tests.oracle.expected_filters import mentions
from tests.oracle.random_lakes import RandomLake

TRIES = 120


class Query(Protocol):
    """A random query."""

    @property
    def sql(self) -> str:
        """Its text."""


Q = TypeVar("Q", bound=Query)


@dataclass(frozen=True, slots=True)
class Failure(Generic[Q]):
    """A failing query: `make` gives it for the draws `taken`, and the command `again` runs it again."""

    again: str
    query: Q
    error: Exception
    make: Callable[[Draws], Q]
    taken: Sequence[int]

    def __str__(self) -> str:
        return "\n".join(
            (
                f"{type(self.error).__name__}: {str(self.error)[:1500]}",
                f"again: {self.again}",
                f"query: {self.query}",
            )
        )


def shown(failure: Failure[Q], lake: RandomLake, problem: Callable[[Q], Exception | None]) -> str:
    """The report of a failure; `problem` returns the error of a query, None if it passes."""
    small = smaller(failure, problem)
    tables = [each for each in lake.tables if mentions(small.sql, each)]
    lines = [
        str(failure),
        f"smaller: {small}",
        f"which says: {str(problem(small))[:1500]}",
        *map(repr, tables),
    ]
    return "\n".join(lines)


def smaller(failure: Failure[Q], problem: Callable[[Q], Exception | None]) -> Q:
    """A query of simpler draws that fails alike."""

    def fails(given: Sequence[int]) -> Sequence[int] | None:
        draws = Draws(given=given)
        found = problem(failure.make(draws))
        return draws.taken if found is not None and alike(found, failure.error) else None

    return failure.make(Draws(given=simplest(failure.taken, fails, TRIES)))


def alike(one: Exception, other: Exception) -> bool:
    """True for errors of one type with the same beginning, numbers aside: a smaller query loses fewer rows."""
    return type(one) is type(other) and _beginning(one) == _beginning(other)


def _beginning(error: Exception) -> str:
    return re.sub(r"\d+", "", str(error))[:8]
