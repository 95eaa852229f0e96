"""Literals and predicates in SQL with one meaning for Spark and DuckDB."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from tests.oracle.draws import Draws
from tests.oracle.random_lakes import EXACT, INTEGERS, TEMPORAL, TYPES, sort_key

Pools = Mapping[str, Sequence[Any]]


def comparable(one: str, other: str) -> bool:
    """True for kinds that both engines convert to the same type before they compare them."""
    kinds = {one, other}
    if len(kinds) == 1:
        return one != "sum"
    return kinds <= {*EXACT, "real"} or kinds == {"real", "single"} or kinds <= set(TEMPORAL)


def is_probed(one: str, other: str) -> bool:
    """True if keys of one kind filter a column of the other kind."""
    return (one == other and one in TYPES) or {one, other} <= set(INTEGERS)


def literal(draws: Draws, pools: Pools, kind: str) -> str:
    """A value that the tables' columns of this kind may have."""
    return str(draws.below(50)) if kind not in pools else _text(draws.choice(pools[kind]), kind)


def _text(value: Any, kind: str) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float():
            return f"CAST('{'NaN' if math.isnan(value) else value}' AS {'FLOAT' if kind == 'single' else 'DOUBLE'})"
        case str():
            # Spark and DuckDB escape these characters differently.
            plain = "".join(each for each in value if each not in "\x00\\")
            return "'" + plain.replace("'", "''") + "'"
        case bytes():
            return f"unhex('{value.hex()}')"
        case datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _ if kind == "wide":
            return f"CAST('{value:f}' AS DECIMAL(38, 10))"
        case _:
            return str(value)


def predicate(draws: Draws, pools: Pools, columns: Sequence[tuple[str, str]]) -> str:
    """A condition on columns, each given by name and kind; sometimes two or three conditions."""
    made = _simple(draws, pools, columns)
    if draws.chance(12):
        made = f"({made} OR {_simple(draws, pools, columns)})"
    if draws.chance(8):
        made = f"NOT ({made})"
    if draws.chance(15):
        made = f"{made} AND {_simple(draws, pools, columns)}"
    return made


def comparison(draws: Draws, pools: Pools, name: str, kind: str) -> str:
    """A condition that NULL does not satisfy, nor every value."""
    one, other = literal(draws, pools, kind), literal(draws, pools, kind)
    name = _unpushed(name, kind)
    return draws.choice(
        (
            f"{name} <= {one}",
            f"{name} > {one}",
            f"{name} >= {one}",
            f"{name} < {one}",
            f"{name} = {one}",
            f"{name} <> {one}",
            f"{name} BETWEEN {' AND '.join(_ends(draws, pools, kind))}",
            f"{name} IN ({one}, {other}, {literal(draws, pools, kind)})",
        )
    )


def _ends(draws: Draws, pools: Pools, kind: str) -> list[str]:
    """Two literals, the lesser one first, because BETWEEN is empty otherwise."""
    if kind not in pools:
        return sorted((literal(draws, pools, kind) for _ in range(2)), key=int)
    values = sorted((draws.choice(pools[kind]) for _ in range(2)), key=sort_key)
    return [_text(each, kind) for each in values]


def _simple(draws: Draws, pools: Pools, columns: Sequence[tuple[str, str]]) -> str:
    name, kind = draws.choice(columns)
    if not draws.chance(25):
        return comparison(draws, pools, name, kind)
    distinct = f"{_unpushed(name, kind)} IS DISTINCT FROM {literal(draws, pools, kind)}"
    forms = [f"{name} IS NOT NULL", f"{name} IS NULL", distinct]
    same = [each for each, its in columns if its == kind and each != name]
    if same:
        forms.append(f"{name} <> {draws.choice(same)}")
    return draws.choice(forms)


def _unpushed(name: str, kind: str) -> str:
    """An expression that Spark does not push down: its row-group filters lose NaN, which other writers omit
    from bounds.
    """
    return f"({name} * 1)" if kind in ("real", "single") else name
