"""`Lessons`: what earlier queries of a shape have shown, so that a session does not repeat what was no use.

- *Idle filters*: the build ran, its rows were not joined, and its keys changed no scan. The next query of the shape
  refuses the filter (`IDLE_BEFORE`), and the one after it tries it again, since keys and tables change. Each time that
  it is idle again, twice as many queries leave it out.
- *Seconds*: those of a query that left out a filter as too risky, with all that was done with its rows. A loss is
  weighed beside these seconds where they are more than the model says a query surely takes.

A wrong lesson costs seconds and no rows: it chooses among sound filters alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Expression, Filter, Join, Node, Relation

# Shapes that a session remembers; one takes some hundred bytes.
_MOST_SHAPES = 1000
# The most queries of a shape that leave out an idle filter: in the long run one build in nine is for nothing.
_MOST_LEFT_OUT = 8
# A filter is no longer taken for an idle one if so small a part of its former share of rows is expected to pass.
_FAR_SMALLER = 0.5
_LITERAL = "Literal"

Shape: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A filter by its places in the plans of one shape, where columns have other ids in each plan."""

    build: int
    key: str
    relation: int
    column: str

    @staticmethod
    def of(build_side: BuildSide, probe: ProbeColumn) -> Attempt:
        """The attempt to filter a scan by the keys of a build side."""
        return Attempt(build_side.node.id, str(build_side.key), probe.relation.id, probe.name)


@dataclass(frozen=True, slots=True)
class Lesson:
    """The experience with queries of a shape.

    - `idle`: idle filters, each with the share of rows, 0 to 1, that were expected to have one of its keys
    - `seconds`: those that a query without filters that are too risky took; 0 where none is known to have ended
    """

    idle: Mapping[Attempt, float] = field(default_factory=dict)
    seconds: float = 0.0

    def leaves_out(self, attempt: Attempt, share: Callable[[], float]) -> bool:
        """True for an idle filter of which no far smaller share of rows is expected to pass than when it was idle."""
        before = self.idle.get(attempt)
        return before is not None and share() >= before * _FAR_SMALLER


NO_LESSON = Lesson()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The filters of a query whose builds gave keys: those that were idle, each with its share, and those of use."""

    idle: Mapping[Attempt, float] = field(default_factory=dict)
    useful: frozenset[Attempt] = frozenset()


@dataclass(frozen=True, slots=True)
class _Pause:
    """The queries that leave out an idle filter: so many in all, and those still to come; its share of rows."""

    queries: int
    left: int
    share: float


@dataclass(slots=True)
class _Memory:
    """The idle filters with their pauses; the seconds of a query, and the execution of which they are to be asked."""

    idle: dict[Attempt, _Pause] = field(default_factory=dict)
    seconds: float = 0.0
    execution: int | None = None


@dataclass(slots=True)
class Lessons:
    """The lessons of one session by the shape of its queries, the latest `_MOST_SHAPES` of them; thread-safe."""

    _known: OrderedDict[Shape, _Memory] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def before(self, shape: Shape, seconds_of: Callable[[int], float | None]) -> Lesson:
        """The lesson for a query that is about to be planned.

        `seconds_of` tells how long an execution took; None while it runs, and where it failed or is forgotten.
        """
        with self._lock:
            memory = self._known.get(shape, _Memory())
            execution, memory.execution = memory.execution, None
        took = None if execution is None else seconds_of(execution)
        with self._lock:
            if took is not None:
                memory.seconds = took
            return Lesson({each: pause.share for each, pause in memory.idle.items() if pause.left}, memory.seconds)

    def after(self, shape: Shape, outcome: Outcome, execution: int | None = None) -> None:
        """Remembers what became of the filters of a planned query; of `execution` the seconds will be asked for."""
        with self._lock:
            memory = self._known.setdefault(shape, _Memory())
            again = {each: _longer(memory.idle.get(each), share) for each, share in outcome.idle.items()}
            remaining = {each: pause for each, pause in memory.idle.items() if each not in outcome.useful}
            memory.idle = {each: replace(it, left=max(0, it.left - 1)) for each, it in remaining.items()} | again
            # Later queries may have the filter, and take less.
            memory.execution = None if memory.seconds else execution
            self._known.move_to_end(shape)
            while len(self._known) > _MOST_SHAPES:
                self._known.popitem(last=False)


def _longer(pause: _Pause | None, share: float) -> _Pause:
    queries = 1 if pause is None else min(2 * pause.queries, _MOST_LEFT_OUT)
    return _Pause(queries, queries, share)


def shape_of(root: Node) -> Shape:
    """The shape of a query: its operators, tables and joins, and its conditions but for their literals."""
    return hash(tuple(_signature(node) for node in root.walk()))


def _signature(node: Node) -> tuple[object, ...]:
    own = (node.kind, len(node.children), len(node.subqueries))
    match node:
        case Relation():
            return (*own, node.table, node.names)
        case Join(condition=condition):
            return (*own, node.type, None if condition is None else _form(condition))
        case Filter(condition=condition):
            return (*own, None if condition is None else _form(condition))
        case _:
            return own


def _form(expression: Expression) -> tuple[object, ...]:
    """The form of an expression: literals go by their types, and those of a list count once."""
    text = "" if expression.kind == _LITERAL else expression.text
    children: Iterator[tuple[object, ...]] = map(_form, expression.children)
    return (expression.kind, text, expression.type, *dict.fromkeys(children))
