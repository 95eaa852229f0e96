"""Tables of measurements and targets for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.parts import Growth, Part, Row
from pruning.reasons import size


def measurements(part: Part, rows: Sequence[Row]) -> RenderableType:
    """The table of one part, and its growth curves."""
    table = Table(title=Text(part.title), title_justify="left", box=box.SIMPLE_HEAD)
    for name in part.columns:
        table.add_column(name.replace("_", " "), justify="left" if _is_text(rows, name) else "right")
    for row in rows:
        table.add_row(*(Text(shown(name, row.get(name))) for name in part.columns))
    return Group(table, *(Text(line, "dim") for line in growth_lines(part, rows)))


def targets(parts: Sequence[tuple[Part, Sequence[Row]]]) -> RenderableType:
    """The table of targets and measured values; a target for several rows shows the worst of them."""
    table = Table(title=Text("Targets"), title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("what", "target", "measured", ""):
        table.add_column(name, justify="left" if name in {"what", ""} else "right")
    for part, rows in parts:
        for target in part.targets:
            values = [row[target.field] for row in target.of(rows)]
            worst = (max if target.relation == "<=" else min)(values, default=None)
            bound = f"{target.relation} {shown(target.field, target.bound)}"
            table.add_row(target.what, bound, shown(target.field, worst), _verdict(worst, target.reached))
    return table


def growth_lines(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    """One line for each curve: the exponent k of time ~ size^k from the smallest to the largest size."""
    for each in part.growth:
        for group, found in _curves(each, rows):
            first, last = found[0], found[-1]
            steps = math.log(last[each.size] / first[each.size])
            exponent = math.log(last[each.field] / first[each.field]) / steps
            values = ", ".join(f"{row[each.size]:,}: {shown(each.field, row[each.field])}" for row in found)
            yield f"growth of {each.field} {group}: {each.size}^{exponent:.2f} ({values})".replace("  ", " ")


def _curves(growth: Growth, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get(growth.size) and row.get(growth.field):
            groups.setdefault(tuple(row.get(name) for name in growth.by), []).append(row)
    for key, found in groups.items():
        ordered = sorted(found, key=lambda row: row[growth.size])
        if ordered[0][growth.size] < ordered[-1][growth.size]:
            yield " ".join(str(value) for value in key if value is not None), ordered


def shown(name: str, value: Any) -> str:
    """A value formatted for people.

    >>> shown("peak_bytes", 2048), shown("files", 24000), shown("seconds", 0.01234), shown("keys", None)
    ('2.0 KiB', '24,000', '0.0123', '-')
    """
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "NO"
        case int() | float() if "bytes" in name:
            return size(int(value))
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        case _:
            return str(value)


def _is_text(rows: Sequence[Row], name: str) -> bool:
    return any(isinstance(row.get(name), str) for row in rows)


def _verdict(worst: float | None, reached: Any) -> Text:
    if worst is None:
        return Text("not measured", "dim")
    return Text("reached", "green") if reached(worst) else Text("MISSED", "bold red")
