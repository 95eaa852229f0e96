"""The command `scanprune`."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from connectors.cli import query as query_commands
from connectors.cli.command import default_folder, one_line_for_trouble, session
from connectors.spark.versions import require_spark
from pruning.errors import EnvironmentProblem

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Its boxes call a switch `<bool>`.
    rich_markup_mode=None,
    help="Read only the files and row groups of a big table that a join with a small one needs.",
)

_CHECKOUT = Path(__file__).resolve().parents[2]
_INTERRUPTED = "Interrupted; run the same command again to go on from what was made"


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
    """Star joins on TPC-DS tables in each table format, with and without pruning, checked against DuckDB."""
    target = (folder or default_folder()).absolute()
    with one_line_for_trouble(target, _INTERRUPTED, _clear):
        _demo(scale, target, runs)


app.command(short_help="What pruning would do with a query, and why not more.")(query_commands.explain)
app.command(short_help="A query with pruning: its rows, and what was read.")(query_commands.run)


@app.command(short_help="What scans cost on this machine, for the option `costs`.")
def calibrate(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where files are made meanwhile.", show_default="user cache")
    ] = None,
) -> None:
    """Measures what the steps of a scan cost here and prints them as a conf, by which readers are chosen."""
    target = (folder or default_folder()).absolute()
    with one_line_for_trouble(target, "Interrupted"):
        _calibrate(target)


def main() -> None:
    """The entry of the console script."""
    app()


def _demo(scale: float, folder: Path, runs: int | None) -> None:
    if not (_CHECKOUT / "benchmarks" / "demo").is_dir():
        raise EnvironmentProblem(
            "The demo needs the generator of its tables, which is not part of the installed package: "
            "clone the repository and run `make demo` there"
        )
    if str(_CHECKOUT) not in sys.path:
        sys.path.append(str(_CHECKOUT))
    require_spark("show the demo")
    # By name: nothing of the installed package depends on a checkout.
    if not import_module("benchmarks.demo.command").show(folder, scale, runs):
        raise typer.Exit(1)


def _calibrate(folder: Path) -> None:
    require_spark("calibrate")
    from rich.console import Console  # noqa: PLC0415 - `--version` and `--help` answer at once

    from connectors.cli.calibrate import calibrated  # noqa: PLC0415 - the same
    from connectors.cli.command import progress_bar  # noqa: PLC0415 - the same

    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar(Console(stderr=True)) as progress, session("calibrate", folder, {}) as spark:
        costs = calibrated(spark, folder, progress)
    typer.echo(f"spark.pruning.limits.costs={costs}")


def _clear(folder: Path) -> None:
    """Removes half-made tables: Spark may write to one until it has ended."""
    # No checkout, no tables.
    with suppress(ImportError, OSError):
        from sample_data.cache import remove_unfinished  # noqa: PLC0415 - absent outside of a checkout

        for each in folder.glob("*/"):
            remove_unfinished(each)


if __name__ == "__main__":
    main()
