"""The program `python dsdgen.py <database> <scale> <extension>`, which fills a DuckDB file with TPC-DS or TPC-H.

The generator is one native call that no signal interrupts and that does not free its memory, so it runs in a
process of its own, which can be killed at any time.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import duckdb

MEMORY_LIMIT = "1GB"
_CALLS: Mapping[str, str] = MappingProxyType({"tpcds": "CALL dsdgen(sf = ?)", "tpch": "CALL dbgen(sf = ?)"})


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


def read_only(database: Path) -> duckdb.DuckDBPyConnection:
    """A connection to a filled file."""
    return duckdb.connect(database, read_only=True, config={"memory_limit": MEMORY_LIMIT})


def fill(database: Path, scale: float, extension: str) -> None:
    """Makes the file `database` with all tables of this scale."""
    with duckdb.connect(database, config={"memory_limit": MEMORY_LIMIT}) as connection:
        connection.execute(f"LOAD {quoted(extension_file(extension))}")
        connection.execute(_CALLS[extension], [scale])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fill(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
