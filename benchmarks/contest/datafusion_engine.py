"""DataFusion as a contender, with filter pushdown into Parquet and late materialization."""

from __future__ import annotations

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

# Threads and memory, equal to those of Spark.
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
# Spark's names of Arrow types.
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
    """An engine that reads the folder of each table; Spark's engine checks that the folder has no other files."""

    def __init__(self) -> None:
        self._context = SessionContext()

    def tables(self, tables: Sequence[Table]) -> None:
        """Registers the tables in a new session."""
        config = SessionConfig(dict(CONFIG)).with_target_partitions(_PARTITIONS)
        self._context = SessionContext(config, RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(_MEMORY))
        if any(each.folder.startswith(S3A) for each in tables):
            _reach_store(self._context)
        for each in tables:
            _register(self._context, each)

    def answer(self, contender: str, query: str) -> Answer:  # noqa: ARG002 - the engine has one contender
        """All rows of a query."""
        try:
            found = self._context.sql(query).to_arrow_table()
        except Exception as error:
            raise self._refusal(query) or error from error
        columns = [column.to_pylist() for column in found.columns]
        return Answer(tuple(map(_type, found.schema.types)), tuple(zip(*columns, strict=True)))

    def exchanged(self) -> int:
        """Zero, because the engine is one process."""
        return 0

    def _refusal(self, query: str) -> Unsupported | None:
        """The error if DataFusion cannot plan the query, else None."""
        try:
            self._context.sql(query).execution_plan()
        except Exception as error:  # noqa: BLE001 - Rust's errors have no class of their own
            return Unsupported(reason(error))
        return None


def _reach_store(context: SessionContext) -> None:
    """Registers the object store of the environment variables with DataFusion."""
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
    # On an object store DataFusion takes a path without a trailing slash for a file.
    folder = f"{table.folder}/"
    if not table.partition:
        context.register_parquet(table.name, folder)
        return
    # Delta's files also contain the partition column, which would then appear twice.
    fields = [field for field in context.read_parquet(table.files[0]).schema() if field.name != table.partition]
    # DataFusion does not parse NULL from a folder name as an int, so the view casts strings. It still skips partitions.
    files = f"{table.name}_files"
    days = [(table.partition, pa.string())]
    context.register_parquet(files, folder, table_partition_cols=days, schema=pa.schema(fields))
    columns = [f'"{field.name}"' for field in fields]
    date = f'TRY_CAST("{table.partition}" AS {table.partition_type}) AS "{table.partition}"'
    context.sql(f'CREATE VIEW "{table.name}" AS SELECT {", ".join([*columns, date])} FROM "{files}"')


def _type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return _TYPES.get(type_, str(type_))


if __name__ == "__main__":
    serve(DatafusionEngine)
