"""Where a column of the table lies in one Parquet file, by the rules by which Spark finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.footer_schema import LeafType, Node, Schema
from pruning.value_type import ValueType


@dataclass(frozen=True, slots=True)
class FooterColumn:
    """A leaf column as files name it: physical names from the top, and the type that Spark reads it as.

    - `name`: what the statistics are called
    - `type`: None where its values cannot be compared, so that it has no statistics
    - `missing_is_null`: False where a file without the column does not read as NULL (a column default)
    - `field_ids`: the ids along the path where Spark finds columns by id; names then count for nothing, and a
      file without the ids is unknown
    """

    name: str
    path: tuple[str, ...]
    type: ValueType | None
    missing_is_null: bool = True
    field_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """One column in one file: the index and type of its leaf; or missing, so that every row is NULL; or unknown.

    `has_null_parents` says that a struct around it may be NULL.
    """

    leaf: int | None = None
    type: LeafType | None = None
    has_null_parents: bool = False
    is_missing: bool = False


def locate(schema: Schema, column: FooterColumn, *, case_sensitive: bool) -> Place:
    """Where `column` lies in a file; unknown where two columns may be meant, or what is there is no plain leaf."""
    here: Sequence[Node] = schema.tops
    found: Node | None = None
    has_null_parents = False
    for depth, part in enumerate(column.path):
        if found is not None:
            if found.is_repeated or not found.is_plain or found.leaf is not None:
                return Place()
            has_null_parents |= found.is_optional
            here = found.children
        matches = _by_id(here, column.field_ids[depth]) if column.field_ids else _by_name(here, part, case_sensitive)
        if not matches and not column.field_ids:
            return Place(is_missing=column.missing_is_null)
        if len(matches) != 1:
            return Place()
        found = matches[0]
    if found is None or found.leaf is None or found.is_repeated:
        return Place()
    return Place(found.leaf, found.type, has_null_parents)


def leaves_under(schema: Schema, tops: Sequence[str] | None, *, case_sensitive: bool) -> list[int]:
    """Indexes of the leaves of these top-level columns, of all if None."""
    if tops is None:
        return list(range(len(schema)))
    wanted = {top if case_sensitive else top.lower() for top in tops}
    return [
        index for index, path in enumerate(schema.paths) if (path[0] if case_sensitive else path[0].lower()) in wanted
    ]


def _by_name(nodes: Sequence[Node], name: str, case_sensitive: bool) -> list[Node]:  # noqa: FBT001 - private
    if case_sensitive:
        return [node for node in nodes if node.name == name]
    return [node for node in nodes if node.name.lower() == name.lower()]


def _by_id(nodes: Sequence[Node], field_id: int) -> list[Node]:
    return [node for node in nodes if node.field_id == field_id]
