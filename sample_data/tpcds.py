"""TPC-DS source files by DuckDB's generator; equal scales and versions give equal bytes."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pruning.errors import EnvironmentProblem
from sample_data.cache import Manifest, Progress, cache_folder, made_whole, quiet

TABLES: tuple[str, ...] = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address"),
    *("customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item"),
    *("promotion", "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse"),
    *("web_page", "web_returns", "web_sales", "web_site"),
)

# The generator does not terminate at much smaller scales.
LEAST_SCALE = 0.01
_GENERATOR = Path(__file__).with_name("dsdgen.py")
_DATABASE = "dsdgen.duckdb"
_REVISION = 1
# The generator reports no progress, so progress is estimated from the size of its file.
_BYTES_PER_SCALE = 320_000_000
_SHARE_OF_GENERATOR = 0.8
# Only these columns exceed an int at the largest scales; all other numbers are ints in the standard.
_LONG = ("_ticket_number", "_order_number")


@dataclass(frozen=True, slots=True)
class TpcdsFiles:
    """One Parquet file per table, with columns of Spark's types int, bigint, decimal, date and string."""

    scale: float
    manifest: Manifest
    paths: Mapping[str, Path]


def generate(scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = quiet) -> TpcdsFiles:
    """The files of `tables` (None: all) below `target`; missing files are generated.

    Each scale has a folder of its own. An interrupted call leaves no broken file, and the next call
    resumes. Memory stays near `dsdgen.MEMORY_LIMIT` at any scale. Raises `ValueError` for an invalid
    scale or table, `EnvironmentProblem` if packages are missing.
    """
    if not (math.isfinite(scale) and scale >= LEAST_SCALE):
        raise ValueError(f"Cannot generate TPC-DS at scale {scale!r}: it must be a number from {LEAST_SCALE} on")
    wanted = TABLES if tables is None else tuple(tables)
    if unknown := set(wanted) - set(TABLES):
        raise ValueError(f"TPC-DS has no table {min(unknown)!r}: it has {', '.join(TABLES)}")
    manifest: Manifest = {"generator": f"duckdb {_duckdb_version()}", "revision": _REVISION, "scale": scale}
    folder = target / f"sf{scale:g}"
    paths = {table: folder / f"{table}.parquet" for table in wanted}
    with cache_folder(folder, manifest, (_DATABASE, *(f"{table}.parquet" for table in TABLES))):
        missing = {table: path for table, path in paths.items() if not path.exists()}
        if missing:
            _generate(scale, folder / _DATABASE, progress)
            _export(folder / _DATABASE, missing, progress)
            (folder / _DATABASE).unlink()
    progress("TPC-DS generated", 1.0)
    return TpcdsFiles(scale, manifest, paths)


def _duckdb_version() -> str:
    try:
        version("duckdb-extension-tpcds")
        return version("duckdb")
    except PackageNotFoundError as error:
        raise EnvironmentProblem(
            f"TPC-DS tables need the package {error.name!r}: run `pip install 'scanprune[demo]'`"
        ) from error


def _generate(scale: float, database: Path, progress: Progress) -> None:
    if database.exists():
        return
    with made_whole(database) as unfinished, _ended_with_us(unfinished, scale) as process:
        while process.poll() is None:
            size = unfinished.stat().st_size if unfinished.exists() else 0
            share = min(size / (_BYTES_PER_SCALE * scale), 1.0)
            progress("Generating TPC-DS", share * _SHARE_OF_GENERATOR)
            _wait(process, seconds=0.2)
        if process.returncode:
            _, said = process.communicate()
            why = said.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise EnvironmentProblem(f"Cannot generate TPC-DS at scale {scale:g}: {why[0]}")


@contextmanager
def _ended_with_us(database: Path, scale: float) -> Iterator[subprocess.Popen[str]]:
    """The process of the generator, which is killed when this process is interrupted."""
    command = [sys.executable, str(_GENERATOR), str(database), repr(scale)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  a file of this package
        try:
            yield process
        finally:
            process.kill()


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _export(database: Path, paths: Mapping[str, Path], progress: Progress) -> None:
    import duckdb  # noqa: PLC0415  an optional dependency that only a first run needs

    from sample_data.dsdgen import MEMORY_LIMIT, quoted  # noqa: PLC0415  imports duckdb, too

    with duckdb.connect(database, read_only=True, config={"memory_limit": MEMORY_LIMIT}) as connection:
        for done, (table, path) in enumerate(paths.items()):
            share = _SHARE_OF_GENERATOR + (1 - _SHARE_OF_GENERATOR) * done / len(paths)
            progress(f"Exporting {table}", share)
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
