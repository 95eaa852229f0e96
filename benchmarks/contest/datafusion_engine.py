"""DataFusion as a contender, with every filter pushed down to the Parquet files and columns read late."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
from datafusion.object_store import AmazonS3

from benchmarks.contest.place import Table
from benchmarks.contest.protocol import Unsupported, reason, serve
from benchmarks.contest.site import S3A
from sample_data.object_store.store import Access
from sample_data.tpcds_queries import Answer

# As many threads as Spark has, and as much memory.
_PARTITIONS, _MEMORY = 2, 4 << 30
CONFIG: Mapping[str, str] = MappingProxyType(
    {
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.parquet.reorder_filters": "true",
        "datafusion.execution.parquet.pruning": "true",
        "datafusion.execution.parquet.enable_page_index": "true",
        "datafusion.execution.parquet.bloom_filter_on_read": "true",
        "datafusion.optimizer.enable_dynamic_filter_pushdown": "true",
    }
)
# Names of types as Spark has them.
_TYPES = MappingProxyType(
    {
        **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64()), "bigint"),
        **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), "string"),
        pa.float32(): "double",
        pa.float64(): "double",
        pa.date32(): "date",
    }
)


class DatafusionEngine:
    """Reads the folder of each table; that it holds no file besides the table's own is checked by Spark's engine."""

    def __init__(self) -> None:
        self._context = SessionContext()

    def tables(self, tables: Sequence[Table]) -> None:
        """Tables in a session of their own."""
        config = SessionConfig(dict(CONFIG)).with_target_partitions(_PARTITIONS)
        self._context = SessionContext(config, RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(_MEMORY))
        if any(each.folder.startswith(S3A) for each in tables):
            _reach_store(self._context)
        for each in tables:
            _register(self._context, each)

    def answer(self, contender: str, query: str) -> Answer:  # noqa: ARG002 - it is one contender
        """All rows."""
        try:
            found = self._context.sql(query).to_arrow_table()
        except Exception as error:
            raise self._refusal(query) or error from error
        columns = [column.to_pylist() for column in found.columns]
        return Answer(tuple(map(_type, found.schema.types)), tuple(zip(*columns, strict=True)))

    def exchanged(self) -> int:
        """It is one process."""
        return 0

    def _refusal(self, query: str) -> Unsupported | None:
        """Why it cannot plan a query, if it cannot."""
        try:
            self._context.sql(query).execution_plan()
        except Exception as error:  # noqa: BLE001 - Rust's errors have no class of their own
            return Unsupported(reason(error))
        return None


def _reach_store(context: SessionContext) -> None:
    """Lets it read the object store that its process was told of."""
    access = Access.of_environment()
    store = AmazonS3(
        access.bucket,
        region=access.region,
        access_key_id=access.access_key,
        secret_access_key=access.secret_key,
        endpoint=access.endpoint,
        allow_http=True,
    )
    context.register_object_store(S3A, store, access.bucket)


def _register(context: SessionContext, table: Table) -> None:
    # Of a store it takes a name that ends otherwise for that of a file.
    folder = f"{table.folder}/"
    if not table.partition:
        context.register_parquet(table.name, folder)
        return
    # Files of Delta hold the column, too, which would be there twice.
    fields = [field for field in context.read_parquet(table.files[0]).schema() if field.name != table.partition]
    # It reads no NULL from a folder's name into an int. Partitions are skipped through this view all the same.
    files = f"{table.name}_files"
    days = [(table.partition, pa.string())]
    context.register_parquet(files, folder, table_partition_cols=days, schema=pa.schema(fields))
    columns = [f'"{field.name}"' for field in fields]
    date = f'TRY_CAST("{table.partition}" AS INT) AS "{table.partition}"'
    context.sql(f'CREATE VIEW "{table.name}" AS SELECT {", ".join([*columns, date])} FROM "{files}"')


def _type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return _TYPES.get(type_, str(type_))


if __name__ == "__main__":
    sys.exit(serve(DatafusionEngine))
