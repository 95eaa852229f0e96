"""The command `scanprune`."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    # Its boxes call a switch `<bool>`.
    rich_markup_mode=None,
    help="Read only the files and row groups of a big table that a join with a small one needs.",
)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What shells call a process that a signal ended: 130 for Ctrl-C, 143 for SIGTERM.
_ENDED_BY_SIGNAL = 128
_SECONDS_TO_END = 20.0


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


@app.command(short_help="Star joins on TPC-DS tables, with and without pruning.")
def demo(
    scale: Annotated[float, typer.Option(help="TPC-DS scale factor: 1 is about 3 million sales.")] = 0.5,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where the tables are kept and found again.", show_default="user cache")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, metavar="COUNT", help="Timed runs of each query.", show_default="up to 3, as time allows"
        ),
    ] = None,
) -> None:
    """Star joins on TPC-DS tables, Delta and Parquet, with and without pruning, checked against DuckDB."""
    target = (folder or default_folder()).absolute()
    with _one_line_for_trouble(target):
        _demo(scale, target, runs)


def main() -> None:
    """The entry of the console script."""
    app()


def _demo(scale: float, folder: Path, runs: int | None) -> None:
    from rich.console import Console  # noqa: PLC0415 - `--version` and `--help` answer at once

    from connectors import demo as demonstration  # noqa: PLC0415 - the same
    from connectors.demo_view import progress_bar, results_table, verdict  # noqa: PLC0415 - the same

    demonstration.check(folder, scale)
    out, errors = Console(), Console(stderr=True)
    with progress_bar(errors) as progress, _session(folder) as spark:
        results = list(demonstration.results(spark, folder, scale, runs, progress))
    out.print(results_table(results))
    out.print(verdict(results))
    out.print(f"Tables are kept in {str(folder)!r}", style="dim", highlight=False, soft_wrap=True)
    if not all(each.rows_equal for each in results):
        raise typer.Exit(1)


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    """A session of this command's own, of which nothing runs on afterwards."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - loads Spark

    from connectors.demo import CONF  # noqa: PLC0415 - the same
    from connectors.session import spark_session  # noqa: PLC0415 - the same

    warehouse = {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    try:
        with _no_process_left():
            spark = spark_session("scanprune demo", conf={**CONF, **warehouse}, log=folder / "spark.log")
        # Spark puts a handler of its own in place.
        _Interrupted.listen()
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        yield spark
    except Py4JJavaError as error:
        raise RuntimeError(_words(error)) from None
    finally:
        _end()


def _words(error: Exception) -> str:
    """What an error of Spark says, which its Java process knows while it runs."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - py4j raises whatever its socket does
        return "Spark's Java process has ended by itself"


@contextmanager
def _no_process_left() -> Iterator[None]:
    """Ends a Java process whose start was broken off: it would wait for ever, and only a frame knows it."""
    try:
        yield
    except BaseException as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for value in frame.f_locals.values():
                if isinstance(value, subprocess.Popen):
                    value.kill()
                    value.wait()
        raise


def _end() -> None:
    """Stops Spark and waits for its Java process."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - loads Spark
    from pyspark import SparkContext  # noqa: PLC0415 - the same

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway  # noqa: SLF001 - PySpark has no word
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    # Errors: the process is gone already.
    with suppress(Py4JError, OSError):
        if context is not None:
            context.stop()
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Interrupted:
    """The signal that asked this process to end: what fails after it does so because of it."""

    by: int | None = None

    @classmethod
    def listen(cls) -> None:
        for each in _SIGNALS:
            signal.signal(each, cls._first)

    @classmethod
    def _first(cls, number: int, _frame: object) -> NoReturn:
        cls.by = number
        # A second one would break off the cleaning up.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        # PySpark complains of calls that break off.
        logging.disable()
        warnings.simplefilter("ignore")
        raise KeyboardInterrupt


@contextmanager
def _one_line_for_trouble(folder: Path) -> Iterator[None]:
    """Ends the process with one line on standard error: 1 for trouble, 130 for Ctrl-C, 143 for SIGTERM."""
    _Interrupted.listen()
    try:
        yield
    except typer.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, its details go to a file
        _clear(folder)
        if _Interrupted.by is not None:
            line = "Interrupted; run the same command again to go on from what was made"
            _stop(line, _ENDED_BY_SIGNAL + _Interrupted.by)
        _stop(str(error) if isinstance(error, PruningError | ValueError) else _in_short(error, folder))


def _clear(folder: Path) -> None:
    """Removes half-made tables: Spark may write to one until it has ended."""
    # No checkout, no tables.
    with suppress(ImportError, OSError):
        from sample_data.cache import remove_unfinished  # noqa: PLC0415 - absent outside of a checkout

        for each in folder.glob("*/"):
            remove_unfinished(each)


def _in_short(error: BaseException, folder: Path) -> str:
    text = "".join(traceback.format_exception(error))
    if "No space left on device" in text:
        return f"No space is left in {str(folder)!r}: free some, or name another folder with --dir"
    first = next(iter(str(error).strip().splitlines()), "")
    details, spark_log = folder / "error.log", folder / "spark.log"
    try:
        details.write_text(text, encoding="utf-8")
    except OSError:
        return f"{type(error).__name__}: {first}"
    return f"{type(error).__name__}: {first} (details in {str(details)!r} and {str(spark_log)!r})"


def _stop(line: str, code: int = 1) -> NoReturn:
    typer.echo(f"scanprune: {line}", err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
