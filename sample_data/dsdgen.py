"""Fills a DuckDB file with TPC-DS: run as `python dsdgen.py <database> <scale>`.

The generator is one native call that no signal interrupts and that keeps its memory, so it gets a
process of its own, which can be ended at any time.
"""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

import duckdb

MEMORY_LIMIT = "1GB"


def extension_file(name: str = "tpcds") -> Path:
    """An extension that fits this DuckDB, as shipped by its Python package; `ImportError` where that is not there."""
    package = importlib.import_module(f"duckdb_extension_{name}")
    return Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def load_tpcds(connection: duckdb.DuckDBPyConnection) -> None:
    """Gives a connection `dsdgen`, `tpcds_queries()` and `tpcds_answers()`, without the network."""
    connection.execute(f"LOAD {quoted(extension_file())}")


def quoted(path: Path) -> str:
    """A path as an SQL string: statements such as LOAD and COPY take no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


def fill(database: Path, scale: float) -> None:
    """Makes the file `database` with all tables at this scale."""
    with duckdb.connect(database, config={"memory_limit": MEMORY_LIMIT}) as connection:
        load_tpcds(connection)
        connection.execute("CALL dsdgen(sf = ?)", [scale])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fill(Path(sys.argv[1]), float(sys.argv[2]))
