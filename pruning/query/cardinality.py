"""How many rows a plan is expected to give, from what the filters of its one scan are expected to let through.

A guess: what rests on it has to be bounded where it is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pruning.query.plan import Filter, Grouping, Join, Node, Passthrough, Project, Relation

# Joins that give each row of the left side, or some of them, once.
_LEFT_ONCE = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})


@dataclass(frozen=True, slots=True)
class Cardinality:
    """`rows` that a scan reads, and the share of them, 0 to 1, that its tests of rows let through."""

    rows: int
    ratio: float

    @property
    def passing(self) -> float:
        """Rows behind the tests."""
        return self.rows * self.ratio


def only_scan(node: Node, held: Collection[int]) -> Relation | None:
    """The one scan below a node that is left to be read; None of several, or of none."""
    left = [each for each in node.walk() if isinstance(each, Relation) and each.at not in held]
    return left[0] if len(left) == 1 else None


def expected_rows(node: Node, scans: Mapping[int, Cardinality], held: Collection[int]) -> float | None:
    """At most about so many rows; None where nothing bounds them.

    Rows of a join with rows that are `held` are taken to meet at most one of these, as those of a fact do of a
    dimension. Conditions of the plan itself are taken to leave out nothing.
    """
    match node:
        case Relation():
            found = scans.get(node.at)
            return None if found is None else found.passing
        case Filter() | Project() | Passthrough() | Grouping():
            return expected_rows(node.children[0], scans, held)
        case Join(type=type_) if type_ in _LEFT_ONCE:
            return expected_rows(node.left, scans, held)
        case Join(type="Inner") if node.right.at in held:
            return expected_rows(node.left, scans, held)
        case Join(type="Inner") if node.left.at in held:
            return expected_rows(node.right, scans, held)
        case _:
            return None
