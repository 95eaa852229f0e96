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
from connectors.cli import serve
from connectors.cli.calibrate_command import calibrate
from connectors.cli.command import default_folder, one_line_for_trouble
from connectors.spark.versions import require_spark
from pruning.errors import EnvironmentProblem

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Rich help shows a switch as `<bool>`.
    rich_markup_mode=None,
    help="Read only the files and row groups of a big table that hold keys of a join with a small one.",
)

_CHECKOUT = Path(__file__).resolve().parents[2]
_INTERRUPTED = "Interrupted; run the same command again to continue with the tables made so far"


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
    """The options before a command."""


@app.command(short_help="Star joins on TPC-DS tables, with and without pruning.")
def demo(
    scale: Annotated[float, typer.Option(help="TPC-DS scale factor: 1 is about 3 million sales.")] = 0.5,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder of the tables, which are kept.", show_default="user cache")
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


app.command(short_help="The filters that pruning would add, and reasons against others.")(query_commands.explain)
app.command(short_help="A query with pruning: its rows, and the files, rows and bytes read.")(query_commands.run)
app.command(short_help="Rates of the cost model on this machine, kept for later sessions.")(calibrate)
app.add_typer(
    serve.app, name="serve", short_help="Spark's servers for clients of any language, with every session pruned."
)


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
    # Imported by name, since the installed package does not contain it.
    if not import_module("benchmarks.demo.command").show(folder, scale, runs):
        raise typer.Exit(1)


def _clear(folder: Path) -> None:
    """Removes unfinished tables, after Spark has ended and writes no more."""
    # An installed package without a checkout has made no tables.
    with suppress(ImportError, OSError):
        from sample_data.cache import remove_unfinished  # noqa: PLC0415 - absent outside of a checkout

        for each in folder.glob("*/"):
            remove_unfinished(each)


if __name__ == "__main__":
    main()
