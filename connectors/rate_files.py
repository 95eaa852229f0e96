"""Files of measured rates in the user's cache: one for this machine, and one for each kind of store that it reads.

`scanprune calibrate` writes them. A file that cannot be read is as good as none, since rates only choose between sound
plans.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pruning.cost.rates import CostRates
from pruning.errors import EnvironmentProblem

logger = logging.getLogger("scanprune")

# The version of the file's format, and of the meaning of the rates in it.
FORMAT = 4
LOCAL = "local"
_NAMES = frozenset(each.name for each in fields(CostRates))


def user_cache() -> Path:
    """The folder of files that are made here, below the user's cache folder (XDG)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return base / "scanprune"


def store_name(uri: str) -> str:
    """The name of the store of a path: that of its file of rates.

    >>> store_name("s3a://lake/sales/2024"), store_name("hdfs://node:9000/x"), store_name("/data/sales")
    ('s3a-lake', 'hdfs-node_9000', 'local')
    """
    parts = urlsplit(uri)
    if parts.scheme in {"", "file"}:
        return LOCAL
    # The user of `user:password@host` is no part of a store's name.
    return _plain(f"{parts.scheme}-{parts.netloc.rpartition('@')[2]}")


def rate_file(store: str = LOCAL) -> Path:
    """The file of this machine and a store, by the name of the store."""
    return user_cache() / "rates" / machine_name() / f"{store}.json"


@cache
def machine_name() -> str:
    """A name for this machine that changes with its processor and the number of its cores."""
    kind = f"{_processor()} {os.cpu_count()}"
    return f"{_plain(platform.node() or 'unnamed')}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else f"{platform.machine()} {platform.processor()}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", text)


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Nanoseconds by the names of rates, as one calibration measured them; `date` is in ISO 8601."""

    rates: Mapping[str, float]
    date: str = ""
    cores: int = 0

    @staticmethod
    def now(rates: Mapping[str, float]) -> MeasuredRates:
        """Rates that were measured at this moment on this machine."""
        return MeasuredRates(rates, datetime.now(timezone.utc).isoformat(timespec="seconds"), os.cpu_count() or 0)

    @staticmethod
    def parse(text: str) -> MeasuredRates:
        """The rates of a file; names that are not known are left out. `ValueError` or `TypeError` for others."""
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("rates"), dict):
            raise TypeError("found no 'rates'")
        if found.get("format") != FORMAT:
            raise ValueError(f"found format {found.get('format')!r}, expected {FORMAT}")
        rates = {name: _nanoseconds(name, value) for name, value in found["rates"].items() if name in _NAMES}
        if ignored := sorted(found["rates"].keys() - _NAMES):
            logger.debug("Rates of unknown names are left out: %s", ", ".join(ignored))
        # The class refuses a rate that is no number of nanoseconds.
        CostRates(**rates)
        return MeasuredRates(rates, str(found.get("date", "")))

    def __str__(self) -> str:
        found = {"format": FORMAT, "date": self.date, "cores": self.cores, "rates": dict(self.rates)}
        return json.dumps(found, indent=2) + "\n"

    def over(self, rates: CostRates) -> CostRates:
        """Other rates with these in their places."""
        return replace(rates, **self.rates)


def _nanoseconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"found {value!r} for {name!r}, expected nanoseconds")
    return float(value)


def machine_rates(stores: Iterable[str] = ()) -> CostRates:
    """The rates of this machine and some of its stores by name, or defaults; each file is read once by a process.

    The slowest store counts where several are read. Without a name it is the store that was measured last.
    """
    folder, found = rate_file().parent, CostRates()
    local = _read(folder / f"{LOCAL}.json")
    if local is not None:
        found = local.over(found)
    known = [_read(folder / f"{each}.json") for each in stores] if stores else _read_stores(folder)
    remote = [each.rates for each in known if each is not None]
    slowest = {
        name: max(each[name] for each in remote if name in each) for name in {it for each in remote for it in each}
    }
    return replace(found, **slowest)


@cache
def _read_stores(folder: Path) -> tuple[MeasuredRates, ...]:
    """The rates of the store that was measured last, if there is one."""
    try:
        files = sorted(each for each in folder.glob("*.json") if each.stem != LOCAL)
    except OSError:
        return ()
    found = [each for each in map(_read, files) if each is not None]
    return (max(found, key=lambda each: each.date),) if found else ()


@cache
def _read(file: Path) -> MeasuredRates | None:
    try:
        return MeasuredRates.parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        logger.info("Ignoring the rates in %r: %s; 'scanprune calibrate' writes them anew", str(file), error)
        return None


def write_rates(measured: MeasuredRates, store: str = LOCAL) -> Path:
    """Writes the file of a store whole or not at all; `EnvironmentProblem` if that is not possible."""
    file = rate_file(store)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_text(str(measured), encoding="utf-8")
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        msg = f"Cannot keep rates in {str(file)!r}: {error.strerror}; name another folder by XDG_CACHE_HOME"
        raise EnvironmentProblem(msg) from error
    forget_files()
    return file


def forget_files() -> None:
    """Makes the next use read the files again."""
    _read.cache_clear()
    _read_stores.cache_clear()
