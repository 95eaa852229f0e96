"""The command `scanprune`."""

from __future__ import annotations

import logging
import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pruning.errors import PruningError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Read only the files and row groups of a big table that a join with a small one needs.",
)

_INTERRUPTED = 130
_SECONDS_TO_END = 20


def default_folder() -> Path:
    """Where generated tables are kept: below the user's cache folder, as the XDG rules say."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return base / "scanprune"


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        try:
            number = version("scanprune")
        except PackageNotFoundError:
            number = "(not installed)"
        typer.echo(f"scanprune {number}")
        raise typer.Exit


@app.callback()
def scanprune(
    show_version: Annotated[  # noqa: FBT002 - a switch of the command line
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Holds the options that stand before a command."""


@app.command()
def demo(
    scale: Annotated[float, typer.Option(help="TPC-DS scale factor: 1 is about 3 million sales.")] = 1.0,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where the tables are kept and found again.", show_default="user cache")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=100, help="Timed runs of each query.")] = 3,
) -> None:
    """Star joins on TPC-DS tables, Delta and Parquet, with and without pruning, checked against DuckDB."""
    target = (folder or default_folder()).absolute()
    with _one_line_for_trouble(target):
        _demo(scale, target, runs)


def main() -> None:
    """The entry of the console script."""
    app()


def _demo(scale: float, folder: Path, runs: int) -> None:
    from rich.console import Console  # noqa: PLC0415 - `--version` and `--help` answer at once

    from connectors import demo as demonstration  # noqa: PLC0415 - the same
    from connectors.demo_view import progress_bar, results_table, verdict  # noqa: PLC0415 - the same

    demonstration.check(folder, scale)
    out, errors = Console(), Console(stderr=True)
    with progress_bar(errors) as progress, _session(folder) as spark:
        results = list(demonstration.results(spark, folder, scale, runs, progress))
    out.print(results_table(results, runs))
    out.print(verdict(results))
    out.print(f"Tables are kept in {str(folder)!r}", style="dim", highlight=False, soft_wrap=True)
    if not all(each.rows_equal for each in results):
        raise typer.Exit(1)


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    """A session of this command's own, of which nothing runs on afterwards."""
    from connectors.demo import CONF  # noqa: PLC0415 - loads Spark
    from connectors.session import spark_session  # noqa: PLC0415 - the same

    warehouse = {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    spark = spark_session("scanprune demo", conf={**CONF, **warehouse}, log=folder / "spark.log")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        yield spark
    finally:
        _end(spark)


def _end(spark: SparkSession) -> None:
    """Stops Spark and waits for its Java process, also while the user keeps pressing Ctrl-C."""
    from pyspark import SparkContext  # noqa: PLC0415 - loads Spark

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gateway = SparkContext._gateway  # noqa: SLF001 - PySpark gives no other hold of its process
        spark.stop()
        process = getattr(gateway, "proc", None)
        if gateway is not None and process is not None:
            gateway.shutdown()
            process.stdin.close()
            process.wait(_SECONDS_TO_END)
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _one_line_for_trouble(folder: Path) -> Iterator[None]:
    """Ends the process with one line on standard error: 1 for trouble, 130 for Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _stop("Interrupted; run the same command again to go on from what was made", _INTERRUPTED)
    except (PruningError, ValueError, OSError) as error:
        _stop(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, its details go to a file
        _stop(_in_short(error, folder))


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _in_short(error: Exception, folder: Path) -> str:
    details = folder / "error.log"
    text = "".join(traceback.format_exception(error))
    if "No space left on device" in text:
        return f"No space is left in {str(folder)!r}: free some, or name another folder with --dir"
    details.write_text(text, encoding="utf-8")
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first} (details in {str(details)!r} and {str(folder / 'spark.log')!r})"


def _stop(line: str, code: int = 1) -> NoReturn:
    typer.echo(f"scanprune: {line}", err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
