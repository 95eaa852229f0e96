"""What a scan would read by the conditions of its query alone: what pruning is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from connectors.base import Table
from connectors.columns import Column
from connectors.delta_files import Uris
from connectors.zone_keys import static_columns
from pruning.byte_strings import IntArray
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.query_plan import Expression, Relation
from pruning.skipping import prune


@dataclass(frozen=True, slots=True, eq=False)
class StaticScan:
    """The files that conditions leave, and what they leave of columns by `Column.name`."""

    files: BoolArray
    columns: tuple[Column, ...]
    domains: Mapping[str, Domain]

    @staticmethod
    def of(table: Table, relation: Relation, conditions: tuple[Expression, ...], listed: pa.Array | None) -> StaticScan:
        """`listed` are the paths of the files that the plan itself has found, None where it lists all of them."""
        columns, domains = static_columns(table, relation, conditions)
        files = table.files(list(columns.values()))
        by_layout = {name: each for name, each in domains.items() if columns[name].is_partition}
        left = prune(files, by_layout).kept
        if listed is not None and isinstance(files.names, Uris):
            left &= pc.is_in(files.names.paths, value_set=listed).to_numpy(zero_copy_only=False)
        return StaticScan(left, tuple(columns.values()), domains)

    def row_groups(self, table: Table, files: IntArray) -> BoolArray:
        """Which row groups of the files at these indexes the reader does not skip by the conditions."""
        groups = table.row_groups(files, self.columns, ())
        left: BoolArray = prune(groups.seen_by_reader(), self.domains).kept
        return left if groups.parents is None else left & self.files[groups.parents]
