"""The tables of a layout, made in a separate process, so that its memory does not count for a contender."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.contest.place import Table
from benchmarks.contest.site import Site
from benchmarks.resume import ROOT
from connectors.cli.command import progress_bar
from connectors.spark.session import spark_session
from sample_data.layouts import LAYOUTS, folder_of, is_written, write_layout
from sample_data.source import SourceFiles
from sample_data.workload import WORKLOADS


def tables(name: str, source: SourceFiles, folder: Path, site: Site) -> Sequence[Table]:
    """The tables of `source` in the named layout, uploaded to the site; written below `folder` if they are missing."""
    layout = LAYOUTS[name]
    if not is_written(layout, source, folder):
        asked = (source.schema.name, name, repr(source.scale), str(folder), *source.paths)
        command = [sys.executable, "-m", __name__, *asked]
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - a module of this package
    written = folder_of(layout, source, folder)
    for table in source.paths:
        site.bring(written / table, f"{written.name}/{table}")
    return [site.place.table(written.name, table, layout.format) for table in source.paths]


def main(
    workload: str, layout: str, scale: float, folder: Path, names: Annotated[list[str] | None, typer.Argument()] = None
) -> None:
    """Writes the missing tables of a layout; all tables if `names` is empty."""
    with tempfile.TemporaryDirectory() as logs, progress_bar(Console(stderr=True)) as progress:
        source = WORKLOADS[workload].generate(scale, folder, names or None, progress)
        # More memory, because Z-ordering shuffles a whole fact table.
        spark = spark_session("scanprune tables", conf={"spark.driver.memory": "4g"}, log=Path(logs, "spark.log"))
        try:
            write_layout(spark, LAYOUTS[layout], source, folder, progress)
        finally:
            spark.stop()


if __name__ == "__main__":
    typer.run(main)
