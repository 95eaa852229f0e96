"""The command `scanprune calibrate`: measures rates, prints them as a conf, and keeps them for later sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.command import default_folder, one_line_for_trouble, session
from connectors.cli.query import Confs, given_confs
from connectors.rate_files import LOCAL, MeasuredRates, machine_rates, store_name, write_rates
from connectors.spark.versions import require_spark
from pruning.options import CONF_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.cli.calibrate_trials import Trials

# Scans as sessions read by default; those of other commands are slower, so that their bytes can be counted.
_AS_USUAL: Mapping[str, str] = MappingProxyType(
    {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "true", "spark.buffer.size": str(1 << 16)}
)
_SMALL = MappingProxyType({"rows": 20_000, "kept": 800, "store_bytes": 1 << 12, "warm": 0, "runs": 1, "seconds": 0.1})


def calibrate(
    path: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Folder for temporary files; in an object store, the rates of that store alone are measured.",
            show_default="user cache",
        ),
    ] = None,
    conf: Confs = None,
    is_small: Annotated[bool, typer.Option("--small", hidden=True)] = False,  # noqa: FBT002 - a switch of the command line
) -> None:
    """Measure the rates of the cost model on this machine, or in a store.

    Later sessions on this machine use them, unless the option cost_rates or the conf spark.pruning.limits.costs says
    otherwise. Measure on an idle machine.
    """
    folder = default_folder().absolute()
    with one_line_for_trouble(folder, "Interrupted"):
        _calibrate(folder, path, dict(given_confs(conf or [])), is_small=is_small)


def _calibrate(folder: Path, path: str | None, conf: Mapping[str, str], *, is_small: bool) -> None:
    require_spark("calibrate")
    from rich.console import Console  # noqa: PLC0415 - `--help` answers at once

    from connectors.cli.calibrate_trials import Trials  # noqa: PLC0415 - the same
    from connectors.cli.command import progress_bar  # noqa: PLC0415 - the same

    load = os.getloadavg()[0]
    trials = Trials(**_SMALL) if is_small else Trials()  # type: ignore[arg-type]
    folder.mkdir(parents=True, exist_ok=True)
    with progress_bar(Console(stderr=True)) as progress, session("calibrate", folder, {**_AS_USUAL, **conf}) as spark:
        rates = measured(spark, path, folder, progress, trials)
    tell(rates, LOCAL if path is None else store_name(path))
    if warning := busy(load, os.cpu_count() or 1):
        typer.echo(warning, err=True)


def measured(
    spark: SparkSession, path: str | None, folder: Path, progress: Callable[[str, float], None], trials: Trials
) -> dict[str, float]:
    """The rates of a store where `path` lies in one, else those of this machine, by files in `path` or `folder`."""
    from connectors.cli.calibrate import calibrated  # noqa: PLC0415 - `--help` answers at once
    from connectors.cli.calibrate_store import store_rates  # noqa: PLC0415 - the same
    from connectors.spark.files import local_path  # noqa: PLC0415 - the same

    if path is None or store_name(path) == LOCAL:
        local = folder if path is None else (local_path(path) or Path(path).expanduser().absolute())
        local.mkdir(parents=True, exist_ok=True)
        return calibrated(spark, local, progress, trials)
    return store_rates(spark, path, progress, trials)


def tell(rates: Mapping[str, float], store: str) -> None:
    """Prints rates as a conf, keeps them, and says where; the conf also has those that were measured before."""
    now = MeasuredRates.now(rates)
    typer.echo(f"{CONF_PREFIX}limits.costs={now.over(machine_rates([store]))}")
    file = write_rates(now, store)
    typer.echo(f"Kept in {str(file)!r} for later sessions; delete that file to forget it", err=True)


def busy(load: float, cores: int) -> str:
    """A warning where more processes wanted to run than there are cores; empty where that is not so."""
    if load <= cores:
        return ""
    return (
        f"The machine was busy before the start ({load:.1f} processes, {cores} cores): calibrate again when it is idle"
    )
