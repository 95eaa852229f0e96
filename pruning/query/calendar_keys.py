"""Calendar keys: `year(ts) = y AND month(ts) = m` compares the months of `ts` with those of `make_date(y, m, 1)`.

The year alone leaves twelve months, and the month alone tells nothing of the order of `ts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pruning.query.join_condition import sides_of
from pruning.query.plan import Expression, Join, conjuncts_at

MAKE_DATE = "MakeDate"
_YEAR, _MONTH, _DAY = "Year", "Month", "DayOfMonth"
_FIRST = Expression("Literal", (), None, "int", "1")
_UNIT = Expression("Literal", (), None, "string", "MONTH")


@dataclass(frozen=True, slots=True)
class CalendarKey:
    """Keys of months, or of days: where the rows of a join match, `probe` of one side equals `build` of the other.

    `path` are the child indices that lead to the year of the build side in the condition of the join. `parts` are the
    functions of the probe side that tell nothing by themselves.
    """

    probe: Expression
    build: Expression
    path: tuple[int, ...]
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    kind: str
    of: Expression
    key: Expression
    path: tuple[int, ...]


def calendar_keys(join: Join, *, left_is_probe: bool) -> Iterator[CalendarKey]:
    """The keys that equalities of a join with the year and the month of one date make together, in one direction."""
    found: dict[Expression, dict[str, _Part]] = {}
    for each in _parts(join, left_is_probe=left_is_probe):
        found.setdefault(each.of, {}).setdefault(each.kind, each)
    for date, parts in found.items():
        if _YEAR in parts and _MONTH in parts:
            yield _key(date, parts)


def _parts(join: Join, *, left_is_probe: bool) -> Iterator[_Part]:
    for path, part in conjuncts_at(join.condition):
        sides = sides_of(join, part) if part.kind == "EqualTo" else None
        if sides is None:
            continue
        probe, build = sides if left_is_probe else sides[::-1]
        of, key = part.children[probe], part.children[build]
        # The date of the rows of a build is made of columns, by a function of int.
        if of.kind in (_YEAR, _MONTH, _DAY) and key.column is not None and key.type == "int":
            yield _Part(of.kind, of.children[0], key, (*path, build))


def _key(date: Expression, parts: Mapping[str, _Part]) -> CalendarKey:
    year, month, day = parts[_YEAR], parts[_MONTH], parts.get(_DAY)
    numbers: Sequence[Expression] = (year.key, month.key, _FIRST if day is None else day.key)
    probe = Expression("TruncDate", (date, _UNIT)) if day is None else date
    others = tuple(Expression(each, (date,)) for each in (_MONTH, _DAY))
    return CalendarKey(probe, Expression(MAKE_DATE, tuple(numbers), None, "date"), year.path, others)
