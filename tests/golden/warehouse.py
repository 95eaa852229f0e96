"""A warehouse without files: TPC-DS at scale 10, from the metadata of its tables.

`python -m tests.golden.warehouse FOLDER` reads the metadata of Delta tables into `warehouse.json`: for each table the
bytes and rows of its files, and for each column its bytes, and its least, greatest and different values in each file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from connectors.parquet.footer import Schemas, chunk_metadata, parse_footer
from pruning.query.plan import Expression, GlobalAggregate, Grouping, Join, Limit, Node, Project, Relation, Union
from pruning.query.plan_statistics import QueryFacts
from pruning.query.requests import (
    DescribeFiles,
    DescribeRowGroups,
    DescribeRows,
    EstimateBytes,
    Request,
    RowShape,
    ScanContainers,
)
from pruning.scan.statistics import UNKNOWN, ColumnStatistics, ContainerKind, Containers
from pruning.values.byte_strings import IntArray
from pruning.values.types import ValueType

WAREHOUSE = Path(__file__).with_name("warehouse.json")
CORES, BROADCAST_LIMIT = 2, 10 << 20
# Spark's widths of values where it estimates bytes; those of columns that no table has are like a bigint's.
_WIDTHS = {"int": 4, "date": 4, "string": 20}
_ROW_OVERHEAD, _LOCAL_BYTES = 8, 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its bytes, and its ends and different values in each file."""

    type: str
    bytes: int
    lows: tuple[Any, ...]
    highs: tuple[Any, ...]
    nulls: tuple[int, ...]
    distinct: tuple[int, ...]

    def statistics(self, type_: ValueType) -> ColumnStatistics:
        """Its statistics in the files of the table, as a type of the plan."""
        ends = [[_value(self.type, each) for each in side] for side in (self.lows, self.highs)]
        found = ColumnStatistics.of(type_, list(zip(*ends, self.nulls, strict=True)))
        return replace(found, distinct=np.array(self.distinct, np.int64))


@dataclass(frozen=True, slots=True)
class Table:
    """A table: bytes and rows of its files, and its columns."""

    sizes: tuple[int, ...]
    rows: tuple[int, ...]
    columns: Mapping[str, Column]

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(self.sizes)

    def containers(self, at: IntArray | None, name: str = "", type_: ValueType | None = None) -> ScanContainers:
        """The files at some places, all for None, with the statistics of one column."""
        places = np.arange(len(self.sizes)) if at is None else at
        known = {} if type_ is None else {name: self.columns[name].statistics(type_).take(places)}
        files = Containers(
            ContainerKind.FILE,
            [f"file {each}" for each in places],
            np.array(self.rows, np.int64)[places],
            np.array(self.sizes, np.int64)[places],
            known,
        )
        return ScanContainers(files, name, type_)


@cache
def tables() -> Mapping[str, Table]:
    """All tables by name."""
    found = json.loads(WAREHOUSE.read_text(encoding="utf-8"))
    return {name: _table(fields) for name, fields in found.items()}


def _table(fields: Mapping[str, Any]) -> Table:
    columns = {
        name: Column(type_, size, tuple(lows), tuple(highs), tuple(nulls), tuple(distinct))
        for name, (type_, size, lows, highs, nulls, distinct) in fields["columns"].items()
    }
    return Table(tuple(fields["sizes"]), tuple(fields["rows"]), columns)


def _value(type_: str, text: Any) -> Any:
    if text is None:
        return None
    match type_:
        case "date":
            return date.fromisoformat(text)
        case _ if type_.startswith("decimal"):
            return Decimal(str(text))
        case _:
            return text


def table_of(relation: Relation) -> Table:
    """The table that a scan of a recorded plan reads."""
    return tables()[relation.table.rpartition(".")[2]]


# Answers.


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to requests about the metadata of one plan; `used` are the columns that the query uses."""

    root: Node
    used: Collection[int]
    _widths: dict[int, int] = field(default_factory=dict)
    _bytes: dict[int, float] = field(default_factory=dict)

    def facts(self) -> QueryFacts:
        """The facts about the plan."""
        scans = [each for each in self.root.walk() if isinstance(each, Relation)]
        sizes = {each.id: table_of(each).bytes for each in scans}
        return QueryFacts(
            sizes,
            frozenset(sizes),
            used=frozenset(self.used),
            broadcast_limit=BROADCAST_LIMIT,
            cores=CORES,
            runs_on_driver=True,
        )

    def answer(self, request: Request[Any]) -> Any:
        """The answer to a request."""
        match request:
            case DescribeFiles(relation, column):
                return self._described(relation, column, None)
            case DescribeRowGroups(relation, files, column):
                return self._described(relation, column, files) if column is not None else self._needed(relation, files)
            case EstimateBytes(nodes):
                return [int(self._estimated(each)) for each in nodes]
            case DescribeRows(node):
                has_text = any(self._width(each) > 8 for each in node.output)
                return RowShape(sum(map(self._width, node.output)), has_text)
            case _:
                raise AssertionError(f"asked for {request}")

    def _described(self, relation: Relation, column: int | None, files: IntArray | None) -> ScanContainers:
        if column is None:
            return table_of(relation).containers(files)
        place = relation.output.index(column)
        return table_of(relation).containers(files, relation.names[place], ValueType.parse(relation.types[place]))

    def _needed(self, relation: Relation, files: IntArray) -> ScanContainers:
        table = table_of(relation)
        names = [name for name, at in zip(relation.names, relation.output, strict=True) if at in self.used]
        share = sum(table.columns[each].bytes for each in names) / sum(each.bytes for each in table.columns.values())
        found = table.containers(files).containers
        sizes = (found.sizes * share).astype(np.int64)
        return ScanContainers(Containers(ContainerKind.ROW_GROUP, found.names, found.rows, sizes, {}))

    def _width(self, column: int) -> int:
        if not self._widths:
            self._widths.update(_widths_of(self.root))
        return self._widths.get(column, 8)

    def _row(self, node: Node) -> int:
        return _ROW_OVERHEAD + sum(map(self._width, node.output))

    def _estimated(self, node: Node) -> float:
        """The bytes of a node as Spark estimates them without statistics of columns."""
        if node.id not in self._bytes:
            self._bytes[node.id] = self._estimate(node)
        return self._bytes[node.id]

    def _estimate(self, node: Node) -> float:
        match node:
            case Relation():
                return float(table_of(node).bytes)
            case GlobalAggregate():
                return float(self._row(node))
            case Limit(count=count) if count is not None:
                return min(float(count * self._row(node)), self._estimated(node.children[0]))
            case Join(type="LeftSemi" | "LeftAnti"):
                return self._estimated(node.left)
            case Join():
                return min(1e18, self._estimated(node.left) * self._estimated(node.right))
            case Union():
                return sum(map(self._estimated, node.children))
            case _ if len(node.children) == 1:
                below = node.children[0]
                return self._estimated(below) * self._row(node) / self._row(below)
            case _:
                return float(_LOCAL_BYTES)


def _widths_of(root: Node) -> Iterator[tuple[int, int]]:
    for node in root.walk():
        if isinstance(node, Relation):
            yield from ((at, _WIDTHS.get(type_, 8)) for at, type_ in zip(node.output, node.types, strict=True))
        made: Mapping[int, Expression] = {}
        if isinstance(node, Project):
            made = node.made or {}
        elif isinstance(node, Grouping):
            made = node.groups or {}
        yield from ((at, _WIDTHS.get(each.type, 8)) for at, each in made.items() if each.type)


# Metadata of real tables.


def read(folder: Path) -> dict[str, Any]:
    """The metadata of each Delta table below a folder, as `warehouse.json` holds it."""
    return {each.name: _read_table(each) for each in sorted(folder.iterdir()) if (each / "_delta_log").is_dir()}


def _read_table(folder: Path) -> dict[str, Any]:
    (log,) = (folder / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    adds = sorted((each["add"] for each in actions if "add" in each), key=lambda it: str(it["path"]))
    found = [json.loads(each["stats"]) for each in adds]
    (schema,) = (json.loads(each["metaData"]["schemaString"]) for each in actions if "metaData" in each)
    paths = [folder / each["path"] for each in adds]
    written, distinct = _column_bytes(paths), _distinct(paths)
    columns = {}
    for each in schema["fields"]:
        name, type_ = each["name"], {"integer": "int", "long": "bigint"}.get(each["type"], each["type"])
        ends = [[it[side].get(name) for it in found] for side in ("minValues", "maxValues", "nullCount")]
        columns[name] = [type_, written[name], *ends, distinct[name]]
    return {"sizes": [each["size"] for each in adds], "rows": [it["numRecords"] for it in found], "columns": columns}


def _column_bytes(paths: Collection[Path]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in paths:
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            for at in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(at)
                found[chunk.path_in_schema] = found.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
    return found


def _distinct(paths: Sequence[Path]) -> dict[str, list[int]]:
    """The different values in the row groups of each file, added up; `UNKNOWN` where a row group does not tell."""
    found: dict[str, list[int]] = {}
    for path in paths:
        data = path.read_bytes()
        footer = parse_footer(data[-int.from_bytes(data[-8:-4], "little") - 8 :], Schemas())
        for leaf, (name,) in enumerate(footer.schema.paths):
            groups = [chunk_metadata(footer, group, leaf).distinct for group in range(len(footer.rows))]
            found.setdefault(name, []).append(UNKNOWN if UNKNOWN in groups else sum(groups))
    return found


def write(found: Mapping[str, Any]) -> None:
    """Replaces `warehouse.json`, with a line for each column."""
    lines = []
    for name, fields in found.items():
        columns = ",\n".join(f"  {json.dumps(at)}: {_compact(it)}" for at, it in fields["columns"].items())
        files = f'"sizes": {_compact(fields["sizes"])}, "rows": {_compact(fields["rows"])}'
        lines.append(f'{json.dumps(name)}: {{{files}, "columns": {{\n{columns}}}}}')
    WAREHOUSE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    write(read(Path(sys.argv[1])))
