"""Numbers that can be set reach code as arguments; those that cannot have their unit and reason beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from pruning.limits import Limits

ROOT = Path(__file__).resolve().parents[2]
TABLE = {ROOT / "pruning" / name for name in ("limits.py", "execution_limits.py")}
MODULES = {
    path: ast.parse(path.read_text())
    for path in sorted([*ROOT.glob("pruning/**/*.py"), *ROOT.glob("connectors/**/*.py")])
    if path not in TABLE
}
# A number with such a name could be another one, unlike facts of formats, types and engines.
CHOSEN = {"MOST", "FEW", "ENOUGH", "SECONDS", "THREADS", "KEPT", "SHARE", "FILES", "COLUMNS", "RANGES", "PARTITIONS"}
CHOSEN |= {"REPLIES", "TAIL", "BUFFER", "PIECE", "BROADCAST", "DRIVER"}


def numbers(module: ast.Module) -> Iterator[tuple[str, int]]:
    """The names of the numeric constants of a module, with their lines."""
    for each in module.body:
        if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
            continue
        target = each.targets[0] if isinstance(each, ast.Assign) else each.target
        pairs = [(target, each.value)]
        if isinstance(target, ast.Tuple) and isinstance(each.value, ast.Tuple):
            pairs = list(zip(target.elts, each.value.elts, strict=True))
        yield from ((name.id, each.lineno) for name, value in pairs if isinstance(name, ast.Name) and is_number(value))


def is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(each):
            return isinstance(each, int | float) and not isinstance(each, bool)
        case ast.UnaryOp(operand=each):
            return is_number(each)
        case ast.BinOp(left, _, right):
            return is_number(left) and is_number(right)
        case _:
            return False


def defaults(module: ast.Module) -> Iterator[ast.AST]:
    """The defaults of parameters and of fields."""
    for each in ast.walk(module):
        match each:
            case ast.arguments():
                yield from (*each.defaults, *filter(None, each.kw_defaults))
            case ast.ClassDef():
                yield from (field.value for field in each.body if isinstance(field, ast.AnnAssign) and field.value)


def names(parts: Iterator[ast.AST]) -> int:
    return sum(isinstance(it, ast.Name) and it.id == "LIMITS" for part in parts for it in ast.walk(part))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_chosen_number_has_its_unit_and_reason_above_it(path):
    above = ["", *path.read_text().splitlines()]
    chosen = [(name, line) for name, line in numbers(MODULES[path]) if CHOSEN & set(name.split("_"))]
    assert [] == [name for name, line in chosen if not above[line - 1].startswith("# ")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_default_limits_are_a_default_alone(path):
    """A body that reads them would not see the limits of its caller."""
    assert names(iter([MODULES[path]])) == names(defaults(MODULES[path]))


def test_each_limit_is_read():
    read = {each.attr for module in MODULES.values() for each in ast.walk(module) if isinstance(each, ast.Attribute)}
    assert [] == [each.name for each in fields(Limits) if each.name not in read]
