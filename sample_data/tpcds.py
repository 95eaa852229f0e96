"""TPC-DS source files by DuckDB's generator; equal scales and versions give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sample_data.cache import Manifest, Progress, cache_folder, made_whole, quiet
from sample_data.generator import Generator, duckdb_version, exported, fill_database, valid_scale, wanted_tables
from sample_data.source import Clustered, Schema, SourceFiles

TABLES: tuple[str, ...] = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address"),
    *("customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item"),
    *("promotion", "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse"),
    *("web_page", "web_returns", "web_sales", "web_site"),
)

SCHEMA = Schema(
    "tpcds",
    TABLES,
    {
        "store_sales": Clustered("ss_sold_date_sk", ("ss_ticket_number", "ss_item_sk"), 24, "ss_item_sk"),
        "catalog_sales": Clustered("cs_sold_date_sk", ("cs_order_number", "cs_item_sk"), 24, "cs_item_sk"),
        "web_sales": Clustered("ws_sold_date_sk", ("ws_order_number", "ws_item_sk"), 12, "ws_item_sk"),
        "store_returns": Clustered("sr_returned_date_sk", ("sr_ticket_number", "sr_item_sk"), 8, "sr_item_sk"),
        "catalog_returns": Clustered("cr_returned_date_sk", ("cr_order_number", "cr_item_sk"), 8, "cr_item_sk"),
        "web_returns": Clustered("wr_returned_date_sk", ("wr_order_number", "wr_item_sk"), 8, "wr_item_sk"),
        "inventory": Clustered("inv_date_sk", ("inv_item_sk", "inv_warehouse_sk"), 12, "inv_item_sk"),
    },
)

# The generator does not terminate at much smaller scales.
LEAST_SCALE = 0.01
_GENERATOR = Path(__file__).with_name("dsdgen.py")
_DATABASE = "dsdgen.duckdb"
_REVISION = 1
_BYTES_PER_SCALE = 320_000_000
# Only these columns exceed an int at the largest scales; all other numbers are ints in the standard.
_LONG = ("_ticket_number", "_order_number")


@dataclass(frozen=True, slots=True)
class TpcdsFiles(SourceFiles):
    """The tables of TPC-DS, with columns of Spark's types int, bigint, decimal, date and string."""

    schema: Schema = SCHEMA


def generate(scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = quiet) -> TpcdsFiles:
    """The files of `tables` (None: all) below `target`; missing files are generated.

    Each scale has a folder of its own. An interrupted call leaves no broken file, and the next call
    resumes. Memory stays near `dsdgen.MEMORY_LIMIT` at any scale. Raises `ValueError` for an invalid
    scale or table, `EnvironmentProblem` if packages are missing.
    """
    generator = Generator("TPC-DS", "tpcds", _GENERATOR, _BYTES_PER_SCALE)
    valid_scale(generator.title, scale, LEAST_SCALE)
    wanted = wanted_tables(generator.title, TABLES, tables)
    made: Manifest = {"generator": f"duckdb {duckdb_version(generator)}", "revision": _REVISION, "scale": scale}
    folder = target / SCHEMA.folder(scale)
    paths = {table: folder / f"{table}.parquet" for table in wanted}
    with cache_folder(folder, made, (_DATABASE, *(f"{table}.parquet" for table in TABLES))):
        missing = {table: path for table, path in paths.items() if not path.exists()}
        if missing:
            fill_database(generator, folder / _DATABASE, scale, progress)
            _export(folder / _DATABASE, missing, progress)
            (folder / _DATABASE).unlink()
    progress("TPC-DS generated", 1.0)
    return TpcdsFiles(scale, made, paths)


def _export(database: Path, paths: Mapping[str, Path], progress: Progress) -> None:
    from sample_data.dsdgen import quoted, read_only  # noqa: PLC0415  imports duckdb, which only a first run needs

    with read_only(database) as connection:
        for table, path in exported(paths, progress):
            columns = connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
                [table],
            ).fetchall()
            selected = ", ".join(_selected(name, data_type) for name, data_type in columns)
            with made_whole(path) as unfinished:
                connection.execute(f"COPY (SELECT {selected} FROM {table}) TO {quoted(unfinished)} (FORMAT parquet)")


def _selected(name: str, data_type: str) -> str:
    if data_type == "BIGINT" and not name.endswith(_LONG):
        return f"{name}::INTEGER AS {name}"
    return name
