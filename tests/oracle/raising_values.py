"""Expressions in SQL that raise an error on some values, and beside each a form that is guarded against it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.draws import Draws
from tests.oracle.random_relations import Column

# The name of `refuse_null` in SQL.
REFUSE_NULL = "refuse_null"
# The kinds of results: `long` for bigint, `real` for double.
SPARKS_OF_INT = (
    ("100 / coalesce({}, 0)", "real"),
    ("100 % coalesce({}, 0)", "int"),
    ("100 DIV coalesce({}, 0)", "long"),
    ("array(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)[coalesce({}, 99)]", "int"),
    ("element_at(array(1, 2, 3, 4, 5, 6, 7, 8, 9), coalesce({}, 0))", "int"),
    ("IF({} IS NULL, raise_error('no value'), 1)", "int"),
    ("year(make_date(2020, coalesce({}, 13), 1))", "int"),
    ("coalesce({}, 2147483647) + 9", "int"),
    ("CAST(coalesce({}, 1000) AS TINYINT) + 0", "int"),
    ("pmod(100, coalesce({}, 0))", "int"),
    ("size(map_from_arrays(array(0, 100), array(1, coalesce({}, 0)))) / coalesce({}, 0)", "real"),
)
# Keys pass no function in Python.
OF_INT = (*SPARKS_OF_INT, (f"{REFUSE_NULL}({{}})", "int"))
OF_TEXT = (("CAST(coalesce({}, 'none') AS BIGINT)", "long"), ("CAST({} AS INT)", "int"))
GUARDED_INT = (
    ("{}", "int"),
    ("100 / nullif(coalesce({}, 0), 0)", "real"),
    ("CASE WHEN coalesce({}, 0) = 0 THEN 1 ELSE 100 / coalesce({}, 0) END", "real"),
    ("try_divide(100, coalesce({}, 0))", "real"),
    ("100 / coalesce({}, 0.5D)", "real"),
)
GUARDED_TEXT = (("coalesce(length({}), 0)", "int"), ("try_cast({} AS INT)", "int"))
OF_GROUP = (
    ("100 / sum({})", "real"),
    ("100 / max(coalesce({}, 0))", "real"),
    ("100 / min(coalesce({}, 0))", "real"),
    ("100 / count({})", "real"),
    ("100 % sum(coalesce({}, 0))", "long"),
    ("CAST(sum({}) AS INT)", "int"),
    ("sum(CAST({} AS BIGINT) * 4000000000)", "long"),
    ("array(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)[max(coalesce({}, 99))]", "int"),
)
GUARDED_GROUP = (("max({})", "int"), ("count({})", "long"), ("try_divide(100, sum({}))", "real"))
# The call of an aggregate ends the text.
OF_WINDOW = (
    ("max({})", "int"),
    ("100 / sum({})", "real"),
    ("100 / max(coalesce({}, 0))", "real"),
    ("100 / count({})", "real"),
    ("{} / sum({})", "real"),
    ("100 % sum(coalesce({}, 0))", "long"),
)


def refuse_null(value: int | None) -> int:
    """The value; NULL raises an error."""
    if value is None:
        msg = "NULL"
        raise ValueError(msg)
    return value


def of_row(draws: Draws, columns: Sequence[Column]) -> tuple[str, str]:
    """An expression over one of the columns, and its kind; of five four may raise an error.

    The kind `unit` is of numbers that may be 0 in single rows, so that only groups of them compute a divisor.
    """
    fitting = [each for each in columns if each.kind in ("int", "text")]
    if not fitting:
        return columns[0].name, columns[0].kind
    column = draws.choice(fitting)
    forms = (GUARDED_INT, OF_INT) if column.kind == "int" else (GUARDED_TEXT, OF_TEXT)
    text, kind = draws.choice(forms[draws.chance(80)])
    return text.replace("{}", column.name), kind


def of_group(draws: Draws, columns: Sequence[Column]) -> tuple[str, str]:
    """An aggregate over one of the columns, and its kind; of five four may raise an error."""
    numbers = [each for each in columns if each.kind in ("int", "unit")]
    if not numbers or draws.chance(25):
        text, kind = of_row(draws, columns)
        return f"max({text})", kind
    text, kind = draws.choice((GUARDED_GROUP, OF_GROUP)[draws.chance(80)])
    return text.replace("{}", draws.choice(numbers).name), kind


def of_window(draws: Draws, columns: Sequence[Column], key: Column) -> tuple[str, str]:
    """An expression over all rows with an equal key, and its kind."""
    numbers = [each for each in columns if each.kind in ("int", "unit")]
    call, kind = draws.choice(OF_WINDOW) if numbers else ("count(*)", "long")
    name = draws.choice(numbers).name if numbers else ""
    return f"{call.replace('{}', name)} OVER (PARTITION BY {key.name})", kind
