"""`ScanCosts`: what the steps of a scan cost, by either reader."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class ScanCosts:
    """Nanoseconds of a core for one of each; `scanprune calibrate` measures them.

    - `byte`: a byte of a file on this machine, read by either reader; `remote_byte`: one of a store, which is not
      measured but taken to be a hundredth of a microsecond, as 100 MB/s are
    - `spark_value`: a value decoded by Spark's reader; `spark_test`: a row tested above it by keys
    - `arrow_value`: a value decoded by pyarrow; `arrow_test`: one looked up in a table of keys
    - `arrow_search`: a value decoded and tested where there is no such table, as of texts, decimals, keys far apart
    - `arrow_handed`: a value of a row that passed, from Python to Spark
    - `arrow_task`: a task in a Python worker; `arrow_scan`: what a scan by pyarrow takes longer to plan
    - `joined_row`: a row that reaches a join above the scan

    >>> ScanCosts.parse("byte=2, arrow_task=1e7").arrow_task
    10000000.0
    """

    byte: float = 0.6
    remote_byte: float = 10.0
    spark_value: float = 6.0
    spark_test: float = 12.0
    arrow_value: float = 6.0
    arrow_test: float = 2.0
    arrow_search: float = 100.0
    arrow_handed: float = 16.0
    arrow_task: float = 50e6
    arrow_scan: float = 100e6
    joined_row: float = 30.0

    @staticmethod
    def parse(text: str) -> ScanCosts:
        """Costs as `str()` tells them, those that are not named as they are by default; `ValueError` for others."""
        named = dict(_entry(each) for each in text.split(",") if each.strip())
        known = {each.name for each in fields(ScanCosts)}
        if unknown := sorted(set(named) - known):
            raise ValueError(f"found {', '.join(map(repr, unknown))}, expected some of {', '.join(sorted(known))}")
        return replace(ScanCosts(), **named)

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0.0 <= getattr(self, each.name) < float("inf"):
                raise ValueError(f"found {each.name}={getattr(self, each.name)}, expected nanoseconds, 0 or more")

    def __str__(self) -> str:
        return ",".join(f"{each.name}={getattr(self, each.name):.4g}" for each in fields(self))


def _entry(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise ValueError(f"found {text.strip()!r}, expected name=nanoseconds") from None
