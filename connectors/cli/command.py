"""Parts that all commands share: a Spark session that ends with the command, a progress bar, errors in one line."""

from __future__ import annotations

import logging
import signal
import subprocess
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from connectors.rate_files import user_cache
from connectors.spark.session import COUNTABLE, spark_session
from connectors.spark.versions import require_spark
from pruning.errors import PruningError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Exit codes of a process that a signal ended begin here: 130 for Ctrl-C, 143 for SIGTERM.
_ENDED_BY_SIGNAL = 128
_CHATTY = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def default_folder() -> Path:
    """The folder of generated tables, below the user's cache folder (XDG)."""
    return user_cache()


@contextmanager
def session(name: str, folder: Path, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session for one command, which counts the bytes of its scans and has its log and warehouse in `folder`."""
    warehouse = {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    with spark_of(name, folder, {**COUNTABLE, **warehouse, **conf}) as spark:
        yield spark


@contextmanager
def spark_of(name: str, folder: Path, conf: Mapping[str, str], master: str = "local[2]") -> Iterator[SparkSession]:
    """A session for one command, which ends with its Java process; its log lies in `folder`."""
    require_spark(name)
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - loads Spark

    try:
        with _no_process_left():
            spark = spark_session(f"scanprune {name}", master=master, conf=conf, log=folder / "spark.log")
        # Spark has replaced the signal handlers.
        _Interrupted.listen()
        _silence()
        yield spark
    except Py4JJavaError as error:
        raise RuntimeError(_words(error)) from None
    finally:
        _end()


def _silence() -> None:
    """Stops PySpark from logging errors that the command prints in one line."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - loads Spark

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in _CHATTY:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _words(error: Exception) -> str:
    """The text of an error of Spark, which only the running Java process can give."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - py4j raises whatever its socket does
        return "Spark's Java process has ended; run the command again, with more memory if the machine ran out of it"


@contextmanager
def _no_process_left() -> Iterator[None]:
    """Kills the Java process of an interrupted start: it would wait for ever, and only a stack frame refers to it."""
    try:
        yield
    except BaseException as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for value in frame.f_locals.values():
                if isinstance(value, subprocess.Popen):
                    value.kill()
                    value.wait()
        raise


def _end(seconds: float = 20.0) -> None:
    """Stops Spark and waits for its Java process."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - loads Spark

    from connectors.spark.jvm import started_jvm  # noqa: PLC0415 - the same

    context, gateway = started_jvm()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    # These errors mean that the process has ended already.
    with suppress(Py4JError, OSError):
        if context is not None:
            context.stop()
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Interrupted:
    """The signal that asked this process to end; errors after it are its consequences."""

    by: int | None = None

    @classmethod
    def listen(cls) -> None:
        for each in _SIGNALS:
            signal.signal(each, cls._first)

    @classmethod
    def _first(cls, number: int, _frame: object) -> NoReturn:
        cls.by = number
        # A second signal would interrupt the clean-up.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        # PySpark logs and warns about interrupted calls.
        logging.disable()
        warnings.simplefilter("ignore")
        raise KeyboardInterrupt


def _leave(_folder: Path) -> None:
    """The clean-up of a command that writes no tables."""


@contextmanager
def one_line_for_trouble(folder: Path, interrupted: str, clear: Callable[[Path], None] = _leave) -> Iterator[None]:
    """Ends the process on an error with one line on standard error and exit code 1; 130 for Ctrl-C, 143 for SIGTERM.

    Details of an error are written to `folder`, and `clear` removes unfinished tables from it. `interrupted` is the
    line for an interrupted command.
    """
    _Interrupted.listen()
    try:
        yield
    except typer.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, its details go to a file
        clear(folder)
        if _Interrupted.by is not None:
            _stop(interrupted, _ENDED_BY_SIGNAL + _Interrupted.by)
        _stop(str(error) if isinstance(error, PruningError | ValueError) else _in_short(error, folder))


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


# Takes the name of a step and the finished share of the command, 0 to 1.
Report: TypeAlias = Callable[[str, float], None]


@contextmanager
def progress_bar(console: Console) -> Iterator[Report]:
    """A progress bar on a terminal; elsewhere a line for each step."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (TextColumn("{task.description:<36}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Starting Spark", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)


def _lines(console: Console) -> Report:
    last = ""

    def line(what: str, share: float) -> None:
        nonlocal last
        if what != last:
            console.print(f"{share:4.0%} {what}", highlight=False, soft_wrap=True)
        last = what

    return line
