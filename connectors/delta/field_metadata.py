"""`FieldMetadata`: what Delta notes on the fields of a schema, and which of it counts.

Notes stay on fields when the feature that made them is switched off, and other writers copy them into new tables.

| note | counts |
|---|---|
| physical name and id | where the table's mode of column mapping says so |
| expression of a generated column | where the protocol has generated columns |
| former types | always: they widen bounds, so that less is skipped |

Nothing is read of defaults: a column that a file lacks is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructField, StructType

_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"
_TYPE_CHANGES = "delta.typeChanges"
_GENERATED = "delta.generationExpression"
_OFF, _BY_ID = "none", "id"


@dataclass(frozen=True, slots=True)
class FieldMetadata:
    """The metadata of fields in a table with a `mode` of column mapping; `generates` if it has generated columns."""

    mode: str
    generates: bool

    @property
    def finds_by_id(self) -> bool:
        """True if files are searched for a column by its id, not by its physical name."""
        return self.mode == _BY_ID

    def physical_name(self, field: StructField) -> str:
        """The field's name in files and in statistics."""
        return field.name if self.mode == _OFF else _noted_name(field)

    def field_id(self, field: StructField) -> int:
        """The id by which files are searched for the field; -1 if it has none."""
        return int(field.metadata.get(_FIELD_ID, -1))

    def generation_expression(self, field: StructField) -> str:
        """The expression that the field is computed by, in lower case; empty if it is not computed."""
        return str(field.metadata.get(_GENERATED, "")).lower() if self.generates else ""

    def stale_names(self, schema: StructType) -> tuple[str, ...]:
        """Columns with another physical name, though column mapping is off.

        Spark reads files by the name of a column then. Delta writes and reads statistics and partition values by the
        physical name, and other writers do by the name, so they may be those of another column.
        """
        if self.mode != _OFF:
            return ()
        return tuple(f"{each.name}: {_noted_name(each)}" for each in _fields(schema) if each.name != _noted_name(each))


def types_before(field: StructField) -> list[str]:
    """The types that the field had before it was widened, as the log writes them."""
    changes: Sequence[Any] = field.metadata.get(_TYPE_CHANGES) or ()
    return [str(change.get("fromType")) for change in changes]


def _noted_name(field: StructField) -> str:
    return str(field.metadata.get(_PHYSICAL_NAME, field.name))


def _fields(schema: StructType) -> Iterator[StructField]:
    """The fields that may have statistics, and those above them."""
    for field in schema.fields:
        yield field
        if isinstance(field.dataType, StructType):
            yield from _fields(field.dataType)
