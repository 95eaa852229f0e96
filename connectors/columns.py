"""Columns of a table as a caller names them: resolved to one field, with the reason where it cannot be pruned by."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, StringType, StructField, StructType

from pruning.errors import ColumnNotFoundError, UnsupportedTypeError
from pruning.reasons import Reason, ReasonCode
from pruning.values.types import ValueType

_CHAR_METADATA = "__CHAR_VARCHAR_TYPE_STRING"
_BINARY_COLLATION = "UTF8_BINARY"
_CHAR = re.compile(r"(?<!var)char\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """One leaf of a table: its path in the schema's own spelling, and its type.

    `type` is None, with a `refusal`, where its values cannot be compared with storage statistics.
    """

    path: tuple[str, ...]
    spark_type: DataType
    type: ValueType | None
    refusal: Reason | None
    is_partition: bool = False

    @property
    def name(self) -> str:
        """The path as text, parts quoted where they need it: the key of statistics and reports."""
        return ".".join(part if _is_plain(part) else quoted(part) for part in self.path)

    @property
    def sql(self) -> str:
        """The column in a Spark SQL expression.

        A dot would make a table's name of a struct that has the same.
        """
        top, *fields = self.path
        return quoted(top) + "".join(f"[{_text(field)}]" for field in fields)

    @property
    def selected_sql(self) -> str:
        """The column under the name that a field has when it is selected."""
        return self.sql if len(self.path) == 1 else f"{self.sql} AS {quoted(self.path[-1])}"


def quoted(part: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + part.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name; backticks keep dots together.

    >>> split_name("a.`b.c`.`d``e`")
    ('a', 'b.c', 'd`e')
    """
    parts, current, position, inside = [], "", 0, False
    while position < len(name):
        char = name[position]
        if char == "`" and inside and name[position + 1 : position + 2] == "`":
            current, position = current + "`", position + 1
        elif char == "`":
            inside = not inside
        elif char == "." and not inside:
            parts.append(current)
            current = ""
        else:
            current += char
        position += 1
    parts.append(current)
    if inside or not all(parts):
        hint = f"; a name that holds a backtick is written {quoted(name)!r}" if "`" in name else ""
        msg = f"Cannot read the column name {name!r}: expected parts joined by dots, each plain or in backticks{hint}"
        raise ColumnNotFoundError(msg)
    return tuple(parts)


def resolve(
    schema: StructType, name: str, *, table: str, case_sensitive: bool, partitions: Iterable[str] = ()
) -> Column:
    """The leaf of `schema` called `name`; `ColumnNotFoundError` where there is none or more than one."""
    here: DataType = schema
    fields: list[StructField] = []
    for part in split_name(name):
        fields.append(_child(here, part, asked=name, table=table, case_sensitive=case_sensitive))
        here = fields[-1].dataType
    path = tuple(field.name for field in fields)
    type_, refusal = _prunable(fields, ".".join(path))
    return Column(path, here, type_, refusal, len(path) == 1 and path[0] in set(partitions))


def _child(parent: DataType, part: str, *, asked: str, table: str, case_sensitive: bool) -> StructField:
    fields = parent.fields if isinstance(parent, StructType) else []
    matches = [field for field in fields if _same(field.name, part, case_sensitive=case_sensitive)]
    if len(matches) == 1:
        return matches[0]
    found = [field.name for field in (matches or fields)]
    if matches:
        msg = f"Cannot tell which column {asked!r} of {table} is: found {', '.join(map(repr, found))}"
    else:
        msg = f"No column {asked!r} in {table}: {_hint(part, found)}"
    raise ColumnNotFoundError(msg)


def _same(first: str, second: str, *, case_sensitive: bool) -> bool:
    return first == second if case_sensitive else first.lower() == second.lower()


def _hint(part: str, found: Sequence[str]) -> str:
    if part_of_dotted := [name for name in found if name.split(".")[0] == part and "." in name]:
        return f"a name that holds a dot goes in backticks, such as {quoted(part_of_dotted[0])}"
    by_lower = {name.lower(): name for name in found}
    if close := difflib.get_close_matches(part.lower(), by_lower, n=3, cutoff=0.6):
        return f"did you mean {' or '.join(repr(by_lower[name]) for name in close)}"
    shown = ", ".join(map(repr, found[:8])) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
    return f"found {shown}" if found else "it has no fields there"


def _prunable(fields: Sequence[StructField], subject: str) -> tuple[ValueType | None, Reason | None]:
    # Spark keeps the declaration of a nested char at the top-level field.
    declared = " ".join(str((field.metadata or {}).get(_CHAR_METADATA, "")) for field in fields)
    field = fields[-1]
    if isinstance(field.dataType, StringType) and _CHAR.search(declared):
        return None, Reason(ReasonCode.CHAR_PADDED, subject, declared.strip())
    if isinstance(field.dataType, StringType) and field.dataType.collation != _BINARY_COLLATION:
        return None, Reason(ReasonCode.COLLATED, subject, field.dataType.collation)
    text = field.dataType.simpleString()
    try:
        return ValueType.parse("string" if isinstance(field.dataType, StringType) else text), None
    except UnsupportedTypeError:
        return None, Reason(ReasonCode.UNSUPPORTED_TYPE, subject, text)


def _is_plain(part: str) -> bool:
    return part.replace("_", "a").isalnum()
