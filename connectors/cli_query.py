"""The commands `scanprune explain` and `scanprune run`: any query over tables that are named by their paths."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.asked_query import AskedQuery
from connectors.command import default_folder, one_line_for_trouble, session
from pruning.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

_INTERRUPTED = "Interrupted"

Sql = Annotated[str | None, typer.Argument(metavar="SQL", help="The query, or @FILE.", show_default=False)]
File = Annotated[Path | None, typer.Option("--file", "-f", help="A file that holds the query.", show_default=False)]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="A Delta table, or Parquet files: a file, folder or pattern."),
]
Confs = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A conf of Spark, or an option of pruning by its name."),
]


def explain(  # noqa: PLR0913, PLR0917 - options of a command line
    sql: Sql = None,
    file: File = None,
    table: Tables = None,
    run_builds: Annotated[  # noqa: FBT002 - a switch of the command line
        bool, typer.Option("--run-builds", help="Run the small sides, for exact numbers.")
    ] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write a picture to this file.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plain values for machines.")] = False,  # noqa: FBT002
    conf: Confs = None,
) -> None:
    """What pruning would do with a query, and why not more: from metadata alone, unless --run-builds asks for more."""
    with _started("explain", sql, file, table, conf) as (spark, asked):
        from pruning import QueryExplanation  # noqa: PLC0415 - `--help` answers at once
        from pruning import explain as explained  # noqa: PLC0415 - the same

        found = explained(asked.frame(spark), run_builds=run_builds)
        if svg is not None and isinstance(found, QueryExplanation):
            _write(svg, found.to_svg())
        if as_json:
            typer.echo(json.dumps(found.to_dict(), indent=2))
        else:
            _print(found)


def run(  # noqa: PLR0913, PLR0917 - options of a command line
    sql: Sql = None,
    file: File = None,
    table: Tables = None,
    limit: Annotated[int, typer.Option(min=0, metavar="ROWS", help="How many rows are shown.")] = 20,
    compare: Annotated[  # noqa: FBT002 - a switch of the command line
        bool, typer.Option("--compare", help="Run the query without pruning, too: rows have to be equal.")
    ] = False,
    runs: Annotated[
        int, typer.Option(min=0, metavar="TIMES", help="Run so often again, by turns, and say how long that takes.")
    ] = 0,
    conf: Confs = None,
) -> None:
    """A query with pruning: its rows, what was planned beside what was measured, and with --compare both ways."""
    with _started("run", sql, file, table, conf) as (spark, asked):
        from connectors.compared_query import run_query  # noqa: PLC0415 - `--help` answers at once

        out = _console()
        outcome = run_query(asked.frame(spark), compare=compare, runs=runs)
        out.print(outcome.shown(limit))
        _print(outcome.report)
        out.print(outcome.verdict(), soft_wrap=True)
        if not outcome.rows_equal:
            raise typer.Exit(1)


@contextmanager
def _started(
    name: str, sql: str | None, file: Path | None, tables: list[str] | None, confs: list[str] | None
) -> Iterator[tuple[SparkSession, AskedQuery]]:
    """A session for what was asked; what is wrong with the words of the command shows before Spark starts."""
    folder = default_folder().absolute()
    with one_line_for_trouble(folder, _INTERRUPTED):
        asked = AskedQuery.of(sql, file, tables or [], confs or [])
        _make(folder)
        with session(name, folder, asked.conf) as spark:
            yield spark, asked


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot keep Spark's log in {str(folder)!r}: {error.strerror}; name another folder by XDG_CACHE_HOME"
        raise EnvironmentProblem(msg) from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"Cannot write the picture to {str(path)!r}: {error.strerror}"
        raise EnvironmentProblem(msg) from error


def _print(found: object) -> None:
    """In colours on a terminal, else as text of a fixed width."""
    if sys.stdout.isatty():
        _console().print(found)
    else:
        typer.echo(str(found))


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - `--help` answers at once

    return Console()
