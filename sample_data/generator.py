"""DuckDB's generators of TPC-DS and TPC-H, run in a process that fills a database, and exports of its tables."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pruning.errors import EnvironmentProblem
from sample_data.cache import Progress, made_whole

_SHARE_OF_GENERATOR = 0.8


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator: its benchmark's name, its extension of DuckDB, and the program that runs it.

    The generator reports no progress, so progress is estimated from the size of its file and `bytes_per_scale`.
    """

    title: str
    extension: str
    program: Path
    bytes_per_scale: int


def valid_scale(title: str, scale: float, least: float) -> None:
    """Raises `ValueError` unless `scale` is a number from `least` on."""
    if not (math.isfinite(scale) and scale >= least):
        raise ValueError(f"Cannot generate {title} at scale {scale!r}: it must be a number from {least} on")


def wanted_tables(title: str, known: tuple[str, ...], tables: Sequence[str] | None) -> tuple[str, ...]:
    """The names of `tables`, or all if None. Raises `ValueError` for an unknown name."""
    if unknown := set(tables or ()) - set(known):
        raise ValueError(f"{title} has no table {min(unknown)!r}: it has {', '.join(known)}")
    return known if tables is None else tuple(tables)


def duckdb_version(generator: Generator) -> str:
    """The version of DuckDB. Raises `EnvironmentProblem` if it or the generator's extension is not installed."""
    try:
        version(f"duckdb-extension-{generator.extension}")
        return version("duckdb")
    except PackageNotFoundError as error:
        raise EnvironmentProblem(
            f"{generator.title} tables need the package {error.name!r}: run `pip install 'scanprune[demo]'`"
        ) from error


def fill_database(generator: Generator, database: Path, scale: float, progress: Progress) -> None:
    """Makes the file `database` with all tables unless it exists. Raises `EnvironmentProblem` if that fails."""
    if database.exists():
        return
    with made_whole(database) as unfinished, _ended_with_us(generator, unfinished, scale) as process:
        while process.poll() is None:
            size = unfinished.stat().st_size if unfinished.exists() else 0
            share = min(size / (generator.bytes_per_scale * scale), 1.0)
            progress(f"Generating {generator.title}", share * _SHARE_OF_GENERATOR)
            _wait(process, seconds=0.2)
        if process.returncode:
            _, said = process.communicate()
            why = said.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise EnvironmentProblem(f"Cannot generate {generator.title} at scale {scale:g}: {why[0]}")


def exported(paths: Mapping[str, Path], progress: Progress) -> Iterator[tuple[str, Path]]:
    """The tables and their files, with a report of progress before each."""
    for done, (table, path) in enumerate(paths.items()):
        progress(f"Exporting {table}", _SHARE_OF_GENERATOR + (1 - _SHARE_OF_GENERATOR) * done / len(paths))
        yield table, path


@contextmanager
def _ended_with_us(generator: Generator, database: Path, scale: float) -> Iterator[subprocess.Popen[str]]:
    """The process of the generator, which is killed when this process is interrupted."""
    command = [sys.executable, str(generator.program), str(database), repr(scale), generator.extension]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  a file of this package
        try:
            yield process
        finally:
            process.kill()


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return
