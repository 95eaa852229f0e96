"""`Lessons`: what earlier queries of a shape have shown, so that a session does not repeat what was no use.

- *Idle filters*: the build ran, its rows were not joined, and its keys changed no scan. The next query of the shape
  refuses the filter (`IDLE_BEFORE`), and the one after it tries it again, since keys and tables change. Each time that
  it is idle again, twice as many queries leave it out.
- *Seconds*: a query that left out a filter as too risky took at least so long. A loss is weighed beside these seconds
  where they are more than the model says a query surely takes.

A wrong lesson costs seconds and no rows: it chooses among sound filters alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Expression, Filter, Join, Node, Relation

# Shapes that a session remembers; one takes some hundred bytes.
_MOST_SHAPES = 1000
# The most queries of a shape that leave out an idle filter: in the long run one build in nine is for nothing.
_MOST_LEFT_OUT = 8
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
    """The experience with queries of a shape: idle filters, and the fewest seconds that one took, 0 if not known."""

    idle: frozenset[Attempt] = frozenset()
    seconds: float = 0.0


NO_LESSON = Lesson()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The filters of a query whose builds ran: those that were idle, and those that were of use."""

    idle: frozenset[Attempt] = frozenset()
    useful: frozenset[Attempt] = frozenset()


@dataclass(frozen=True, slots=True)
class _Pause:
    """The queries that leave out an idle filter: so many in all, and those still to come."""

    queries: int
    left: int


@dataclass(slots=True)
class _Memory:
    """The idle filters with their pauses; the fewest seconds, and the execution whose seconds are to be asked for."""

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
                memory.seconds = min(took, memory.seconds or took)
            return Lesson(frozenset(each for each, pause in memory.idle.items() if pause.left), memory.seconds)

    def after(self, shape: Shape, outcome: Outcome, execution: int | None = None) -> None:
        """Remembers what became of the filters of a planned query; of `execution` the seconds will be asked for."""
        with self._lock:
            memory = self._known.setdefault(shape, _Memory())
            again = {each: _longer(memory.idle.get(each)) for each in outcome.idle}
            remaining = {each: pause for each, pause in memory.idle.items() if each not in outcome.useful}
            memory.idle = {each: replace(it, left=max(0, it.left - 1)) for each, it in remaining.items()} | again
            memory.execution = execution
            self._known.move_to_end(shape)
            while len(self._known) > _MOST_SHAPES:
                self._known.popitem(last=False)


def _longer(pause: _Pause | None) -> _Pause:
    queries = 1 if pause is None else min(2 * pause.queries, _MOST_LEFT_OUT)
    return _Pause(queries, queries)


def shape_of(root: Node) -> Shape:
    """The shape of a query: equal for queries that differ in literals, ids of columns and versions of tables alone."""
    return hash(tuple(_signature(node) for node in root.walk()))


def _signature(node: Node) -> tuple[object, ...]:
    own = (node.kind, len(node.children), len(node.subqueries))
    match node:
        case Relation():
            return (*own, node.table, node.names)
        case Filter(condition=condition) | Join(condition=condition):
            return (*own, None if condition is None else _form(condition))
        case _:
            return own


def _form(expression: Expression) -> tuple[object, ...]:
    """The form of an expression: literals go by their types, and those of a list count once."""
    text = "" if expression.kind == _LITERAL else expression.text
    children: Iterator[tuple[object, ...]] = map(_form, expression.children)
    return (expression.kind, text, expression.type, *dict.fromkeys(children))
