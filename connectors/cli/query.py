"""The commands `scanprune explain` and `scanprune run`: SQL over tables that are named by their paths."""

from __future__ import annotations

import glob
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.command import default_folder, one_line_for_trouble, session
from pruning.errors import EnvironmentProblem, InvalidQueryError, SourceNotFoundError
from pruning.options import CONF_PREFIX, PruningOptions, option_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console

_INTERRUPTED = "Interrupted"

Sql = Annotated[str | None, typer.Argument(metavar="SQL", help="The query, or @FILE.", show_default=False)]
File = Annotated[Path | None, typer.Option("--file", "-f", help="A file that holds the query.", show_default=False)]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="A table by its path, or files: a file, folder or pattern."),
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
    as_json: Annotated[bool, typer.Option("--json", help="Print plain values for machines.")] = False,  # noqa: FBT002
    conf: Confs = None,
) -> None:
    """Explain how pruning would filter a query, from metadata alone unless --run-builds asks for more."""
    with _started("explain", sql, file, table, conf) as (spark, asked):
        from pruning import explain as explained  # noqa: PLC0415 - `--help` answers at once

        found = explained(asked.frame(spark), run_builds=run_builds)
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
        bool, typer.Option("--compare", help="Run the query without pruning, too, and compare the rows.")
    ] = False,
    runs: Annotated[
        int, typer.Option(min=0, metavar="TIMES", help="Time so many more runs; with --compare both ways alternate.")
    ] = 0,
    conf: Confs = None,
) -> None:
    """Run a query with pruning: its rows, planned and measured numbers, and with --compare the unpruned query, too."""
    with _started("run", sql, file, table, conf) as (spark, asked):
        from connectors.cli.compare import run_query  # noqa: PLC0415 - `--help` answers at once

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
) -> Iterator[tuple[SparkSession, CommandLineQuery]]:
    """The session and the query of a command; mistakes in its arguments are reported before Spark starts."""
    folder = default_folder().absolute()
    with one_line_for_trouble(folder, _INTERRUPTED):
        asked = CommandLineQuery.of(sql, file, tables or [], confs or [])
        make_folder(folder)
        with session(name, folder, asked.conf) as spark:
            yield spark, asked


def make_folder(folder: Path) -> None:
    """Makes the folder of a command's log; `EnvironmentProblem` where it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot keep Spark's log in {str(folder)!r}: {error.strerror}; name another folder by XDG_CACHE_HOME"
        raise EnvironmentProblem(msg) from error


def _print(found: object) -> None:
    """A console with colours on a terminal, else of a fixed width."""
    if sys.stdout.isatty():
        _console().print(found)
    else:
        typer.echo(str(found))


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - `--help` answers at once

    return Console()


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# Top nodes of statements that are no queries, which Spark would run at once.
_STATEMENTS = (f"{_LOGICAL}Command", f"{_LOGICAL}ParsedStatement")


@dataclass(frozen=True, slots=True)
class CommandLineQuery:
    """SQL text, the path of each table that it names, and confs of the session."""

    sql: str
    tables: Mapping[str, str]
    conf: Mapping[str, str]

    @staticmethod
    def of(text: str | None, file: Path | None, tables: Sequence[str], conf: Sequence[str]) -> CommandLineQuery:
        """The query of SQL text, `@FILE` or a file, of tables as `name=path` and of confs as `name=value`.

        A conf without a dot is one of `PruningOptions`. `InvalidQueryError` for what is none of these,
        `InvalidOptionError` for an option of pruning with an impossible value, `SourceNotFoundError` where a path of
        this machine leads nowhere.
        """
        confs = dict(given_confs(conf))
        PruningOptions.from_confs(confs)
        return CommandLineQuery(_sql(text, file), dict(given_tables(tables)), confs)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The query over views of its tables; no action runs.

        `InvalidQueryError` for SQL that Spark does not understand or that is no query, `SourceNotFoundError` for a
        table that it cannot read.
        """
        from pyspark.errors import PySparkException  # noqa: PLC0415 - what is wrong with the text shows without Spark

        for name, path in self.tables.items():
            _opened(spark, name, path)
        try:
            _check_is_query(spark, self.sql)
            return spark.sql(self.sql)
        except PySparkException as error:
            hint = ""
            if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                hint = f"; tables are named by --table, found {', '.join(self.tables) or 'none'}"
            msg = f"Cannot understand the query: {_first_line(error)}{hint}"
            raise InvalidQueryError(msg) from error


def _sql(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        found = "neither SQL nor a file" if text is None else "both SQL and a file"
        msg = f"Cannot tell the query: found {found}, expected one of them"
        raise InvalidQueryError(msg)
    if text is not None and text.startswith("@"):
        file = Path(text[1:])
    if file is not None:
        try:
            text = file.expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text in UTF-8"
            msg = f"Cannot read the query from {str(file)!r}: {why}"
            raise InvalidQueryError(msg) from error
    text = (text or "").strip().removesuffix(";").strip()
    if not text:
        msg = "Cannot run a query without any text: give SQL"
        raise InvalidQueryError(msg)
    return text


def given_tables(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Tables of `name=path`; `InvalidQueryError` for what is none, `SourceNotFoundError` for a path to nothing."""
    seen: set[str] = set()
    for each in given:
        name, equals, path = each.partition("=")
        if not equals or not path:
            msg = f"Cannot tell a table from {each!r}: expected name=path"
            raise InvalidQueryError(msg)
        if not _NAME.fullmatch(name):
            msg = f"Cannot call a table {name!r}: expected a name of letters, digits and underscores"
            raise InvalidQueryError(msg)
        if name.lower() in seen:
            msg = f"Cannot tell which table {name!r} is: found two paths for it"
            raise InvalidQueryError(msg)
        seen.add(name.lower())
        yield name, _found(name, path)


def _found(name: str, path: str) -> str:
    """The path; a local one as an absolute path, since Spark may have another working directory."""
    if _SCHEME.match(path):
        return path
    whole = str(Path(path).expanduser().absolute())
    if not Path(whole).exists() and not glob.glob(whole):  # noqa: PTH207 - a pattern as it is given, not below a folder
        msg = f"No table {name!r} at {path!r}: there is no such path"
        raise SourceNotFoundError(msg)
    return whole


def given_confs(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Confs of `name=value` with full names; `InvalidQueryError` for what is none."""
    own = set(option_names())
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            msg = f"Cannot tell a conf from {each!r}: expected name=value"
            raise InvalidQueryError(msg)
        if "." not in name and name not in own:
            known = ", ".join(sorted(each for each in own if "." not in each))
            msg = f"Cannot set {name!r}: expected a conf of Spark, or one of {known}, or limits.<name>"
            raise InvalidQueryError(msg)
        yield (f"{CONF_PREFIX}{name}" if name in own else name), value


def _opened(spark: SparkSession, name: str, path: str) -> None:
    """Creates a temporary view of a table."""
    with naming_table("read", name, path):
        spark.read.format(format_of(spark, path)).load(path).createOrReplaceTempView(name)


def format_of(spark: SparkSession, path: str) -> str:
    """The name of the format of a table, by its path."""
    from connectors.registry import connectors_of  # noqa: PLC0415 - loads Spark

    return next(each.name for each in connectors_of(spark) if each.claims_path(spark, path))


@contextmanager
def naming_table(verb: str, name: str, path: str) -> Iterator[None]:
    """Raises what Spark or storage raise about a table as a `SourceNotFoundError` that names it."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - loads Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - the same

    from connectors.spark.jvm import java_message  # noqa: PLC0415 - the same

    try:
        yield
    except (OSError, PySparkException, Py4JError) as error:
        why = java_message(error) if isinstance(error, Py4JError) else _first_line(error)
        msg = f"Cannot {verb} the table {name!r} from {path!r}: {why}"
        raise SourceNotFoundError(msg) from error


def _check_is_query(spark: SparkSession, sql: str) -> None:
    # Only Spark's own parser knows which statements are queries.
    from connectors.spark.jvm import java_names, jvm_session  # noqa: PLC0415 - `--help` works without Spark

    parsed = jvm_session(spark).sessionState().sqlParser().parsePlan(sql)
    loader = java_names(spark).java.lang.Thread.currentThread().getContextClassLoader()
    kinds = [loader.loadClass(name) for name in _STATEMENTS]
    if any(kind.isInstance(node) for node in _nodes(parsed) for kind in kinds):
        msg = "Cannot prune a statement that Spark would run at once: expected a query, such as a SELECT"
        raise InvalidQueryError(msg)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for at in range(children.size()):
        yield from _nodes(children.apply(at))


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
