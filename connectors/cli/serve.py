"""The commands `scanprune serve connect` and `scanprune serve thrift`: Spark's servers, with every session enabled."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.command import default_folder, one_line_for_trouble, spark_of
from connectors.cli.query import Confs, format_of, given_confs, given_tables, make_folder, naming_table
from pruning.errors import EnvironmentProblem
from pruning.options import PruningOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Those that the servers have without a conf.
CONNECT_PORT, THRIFT_PORT = 15002, 10000
_STOPPED = "The server has ended"
_REMOTE = "SPARK_REMOTE"

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Serve pruned queries to clients of any language.")

Address = Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 is open to every machine.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="A table of the catalog by its path, or a folder of files."),
]
Log = Annotated[bool, typer.Option("--log", help="Print a line for each query: what was read, or why all was.")]


@app.command(short_help="Spark Connect, for PySpark, Scala, Go, Rust and other clients.")
def connect(
    address: Address = "127.0.0.1",
    port: Port = CONNECT_PORT,
    table: Tables = None,
    conf: Confs = None,
    log: Log = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Serve Spark Connect until interrupted; the queries of every client are pruned."""
    _serve("connect", (address, port), table or [], conf or [], log=log)


@app.command(short_help="The Thrift server, for JDBC and ODBC clients.")
def thrift(
    address: Address = "127.0.0.1",
    port: Port = THRIFT_PORT,
    table: Tables = None,
    conf: Confs = None,
    log: Log = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Serve JDBC and ODBC clients, such as beeline, until interrupted; the queries of every client are pruned."""
    _serve("thrift", (address, port), table or [], conf or [], log=log)


def _serve(kind: str, at: tuple[str, int], tables: list[str], conf: list[str], *, log: bool) -> None:
    folder = default_folder().absolute()
    with one_line_for_trouble(folder, _STOPPED):
        named, confs = dict(given_tables(tables)), dict(given_confs(conf))
        PruningOptions.from_confs(confs)
        make_folder(folder)
        _check_classic()
        from connectors.spark.servers import Endpoint, served  # noqa: PLC0415 - `--help` answers at once

        endpoint = Endpoint.free(kind, *at)
        with (
            tempfile.TemporaryDirectory(prefix="scanprune-", ignore_cleanup_errors=True) as scratch,
            spark_of(f"serve {kind}", folder, {**endpoint.confs(Path(scratch)), **confs}, "local[*]") as spark,
        ):
            for name, path in named.items():
                _create(spark, name, path)
            _enable(spark, log=log)
            with served(spark, endpoint):
                typer.echo(f"Serving at {endpoint.url}; Ctrl-C ends it")
                _wait()


def _check_classic() -> None:
    """Raises where the environment makes PySpark a client: it would start no JVM of its own."""
    if os.environ.get(_REMOTE):
        msg = f"Cannot serve: found {_REMOTE} in the environment, which makes Spark a client; unset it"
        raise EnvironmentProblem(msg)


def _create(spark: SparkSession, name: str, path: str) -> None:
    """Enters a table into the catalog, which all sessions share."""
    quoted = path.replace("\\", "\\\\").replace("'", "\\'")
    with naming_table("create", name, path):
        spark.sql(f"CREATE TABLE `{name}` USING {format_of(spark, path)} LOCATION '{quoted}'")


def _enable(spark: SparkSession, *, log: bool) -> None:
    from connectors.session.session_pruning import enable, enable_new_sessions  # noqa: PLC0415 - loads Spark

    if log:
        logger = logging.getLogger("scanprune")
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    enable(spark, None, None)
    enable_new_sessions(spark)


def _wait() -> None:
    """Returns never: a signal ends it, or the end of Spark's Java process, as an error."""
    from connectors.spark.jvm import started_jvm  # noqa: PLC0415 - loads Spark

    _, gateway = started_jvm()
    while gateway.proc.poll() is None:
        time.sleep(0.5)
    msg = "Spark's Java process has ended; start the server again, with more memory if the machine ran out of it"
    raise EnvironmentProblem(msg)
