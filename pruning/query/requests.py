"""Requests: what decisions ask of an engine, while they do no I/O themselves.

Requests for metadata stand here, those that have something run or pinned in `planner_requests.py`. A decision is a
generator: it yields a request and is sent the answer. `answered()` runs it with whatever can answer: an engine, or the
script of a test. Rules that are plain functions look answers up instead, and raise `Unanswered` for one that is
missing; `with_answers()` asks for it and calls the rule again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Node, Relation
from pruning.reasons import Reason
from pruning.scan.statistics import ColumnStatistics, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.types import ValueType

A = TypeVar("A")
T = TypeVar("T")


class Request(Generic[A]):
    """A request whose answer is an `A`."""

    __slots__ = ()

    @property
    def failure_subject(self) -> str | None:
        """The subject of the `Reason` that is the answer if answering fails; None if such a failure ends pruning."""
        return None


Steps: TypeAlias = Generator[Request[Any], Any, T]


def ask(request: Request[A]) -> Steps[A]:
    """The answer to one request."""
    answer: A = yield request
    return answer


def answered(steps: Steps[T], answer: Callable[[Request[Any]], Any]) -> T:
    """The result of a decision, each of whose requests is answered by `answer`."""
    sent = None
    while True:
        try:
            request = steps.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
        sent = answer(request)


class Unanswered(Exception):  # noqa: N818 - no error: `with_answers()` answers it
    """A rule needs the answer to `request`; `remember` takes it."""

    def __init__(self, request: Request[Any], remember: Callable[[Any], None]) -> None:
        super().__init__(type(request).__name__)
        self.request, self.remember = request, remember


def with_answers(rule: Callable[[], T]) -> Steps[T]:
    """The result of a rule, called again after each answer that it needs. Its expensive parts should be memoized."""
    while True:
        try:
            return rule()
        except Unanswered as missing:
            request, remember = missing.request, missing.remember
        remember((yield request))


@dataclass(frozen=True, slots=True, eq=False)
class ScanContainers:
    """Files or row groups of a scan's table; `name` and `type` are those of the one column with statistics, if any.

    `refusal` says why containers are not skipped by a column without a `type`, if it is known.
    """

    containers: Containers
    name: str = ""
    type: ValueType | None = None
    refusal: Reason | None = None

    @property
    def column(self) -> ColumnStatistics | None:
        """The statistics of the column; None if there are none."""
        return self.containers.columns.get(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class DescribeFiles(Request[ScanContainers | Reason]):
    """Describe all files of a scan's table, with statistics of a column of the scan, or of none."""

    relation: Relation
    column: int | None = None

    @property
    def failure_subject(self) -> str:
        """The name of the table."""
        return self.relation.table


@dataclass(frozen=True, slots=True, eq=False)
class DescribeRowGroups(Request[ScanContainers | Reason]):
    """Describe the row groups of files, given by their indexes, with statistics of a column of the scan, or of none.

    Their sizes are bytes of that column, without one the bytes of all columns that the query uses.
    """

    relation: Relation
    files: IntArray
    column: int | None = None

    @property
    def failure_subject(self) -> str:
        """The name of the table."""
        return self.relation.table


@dataclass(frozen=True, slots=True, eq=False)
class TrustStatistics(Request[bool | Reason]):
    """Answer False where statistics of a column prove no rows, since the session distrusts them or may skip files."""

    probe: ProbeColumn

    @property
    def failure_subject(self) -> str:
        """The name of the column."""
        return self.probe.name


@dataclass(frozen=True, slots=True, eq=False)
class EstimateBytes(Request[Sequence[int]]):
    """Estimate the bytes of the rows of nodes, in order, as the engine does to choose broadcast joins."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class RowShape:
    """The engine's estimate of the bytes of a row's values, and if some of its types may have long values."""

    value_bytes: int
    has_long_values: bool


@dataclass(frozen=True, slots=True, eq=False)
class DescribeRows(Request[RowShape]):
    """Describe the rows of a node."""

    node: Node
