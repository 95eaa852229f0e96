"""The program `python dsdgen.py <database> <scale>`, which fills a DuckDB file with TPC-DS.

The generator is one native call that no signal interrupts and that does not free its memory, so it runs in a
process of its own, which can be killed at any time.
"""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

import duckdb

MEMORY_LIMIT = "1GB"


def extension_file(name: str = "tpcds") -> Path:
    """The file of a DuckDB extension, from its Python package; raises `ImportError` without that package."""
    package = importlib.import_module(f"duckdb_extension_{name}")
    return Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def load_tpcds(connection: duckdb.DuckDBPyConnection) -> None:
    """Loads `dsdgen`, `tpcds_queries()` and `tpcds_answers()` into a connection, without the network."""
    connection.execute(f"LOAD {quoted(extension_file())}")


def quoted(path: Path) -> str:
    """A path as an SQL string literal, for statements such as LOAD and COPY, which take no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


def fill(database: Path, scale: float) -> None:
    """Makes the file `database` with all tables of this scale."""
    with duckdb.connect(database, config={"memory_limit": MEMORY_LIMIT}) as connection:
        load_tpcds(connection)
        connection.execute("CALL dsdgen(sf = ?)", [scale])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fill(Path(sys.argv[1]), float(sys.argv[2]))
