"""`CostRates`: the time of each unit of work, by which the cost model turns rows and bytes into seconds."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class CostRates:
    """Nanoseconds of a core for one of each; `scanprune calibrate` measures all but `query`.

    Scans:
    - `byte`: a byte of a file on this machine; `remote_byte`: one of a store, a hundredth of a
      microsecond at 100 MB/s; `remote_request`: the wait for the first byte of a store's file
    - `decoded_byte`: a byte of a column chunk, decompressed by Spark's reader; `decoded_value`: a number in it
    - `spark_test`: a row tested above the reader by a bloom filter of keys;
      `spark_lookup`: one looked up in a bitmap of keys; `spark_compared`: one compared with ranges or a short list

    Rows above scans:
    - `joined_row`: a row that reaches a broadcast join; `hashed_row`: one that becomes a part of its hash table, or a
      new group of an aggregate
    - `exchanged_row`: a row that a shuffle writes, moves and reads; `sorted_row`: one that is sorted
    - `grouped_row`: a row that an aggregate adds to a group that it has, whose key is one number
    - `row`: a row that a projection or a condition handles

    Queries and builds, in nanoseconds that pass rather than of a core:
    - `query`: planning, and the start of jobs, of a query that reads next to nothing
    - `build_job`: a Spark job of a build without its rows; `driver_build`: a build on the driver without a job
    - `planned_scan`: the planning of a scan by further keys, with its footers
    - `kept_row`: a row of a build's job, brought to the driver and summarised; `driver_row`: one that the driver read

    >>> CostRates.parse("byte=2, build_job=1e7").build_job
    10000000.0
    """

    byte: float = 0.8
    remote_byte: float = 10.0
    remote_request: float = 30e6
    decoded_byte: float = 1.2
    decoded_value: float = 4.5
    spark_test: float = 28.0
    spark_lookup: float = 10.0
    spark_compared: float = 8.0
    joined_row: float = 20.0
    hashed_row: float = 400.0
    exchanged_row: float = 250.0
    sorted_row: float = 100.0
    grouped_row: float = 50.0
    row: float = 4.0
    query: float = 700e6
    build_job: float = 100e6
    driver_build: float = 20e6
    planned_scan: float = 10e6
    kept_row: float = 600.0
    driver_row: float = 150.0

    @staticmethod
    def parse(text: str) -> CostRates:
        """Rates as `str()` tells them, those that are not named as they are by default; `ValueError` for others."""
        named = dict(_entry(each) for each in text.split(",") if each.strip())
        known = {each.name for each in fields(CostRates)}
        if unknown := sorted(set(named) - known):
            raise ValueError(f"found {', '.join(map(repr, unknown))}, expected some of {', '.join(sorted(known))}")
        return replace(CostRates(), **named)

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0.0 <= getattr(self, each.name) < float("inf"):
                raise ValueError(f"found {each.name}={getattr(self, each.name)}, expected nanoseconds, 0 or more")

    def __str__(self) -> str:
        return ",".join(f"{each.name}={getattr(self, each.name):.4g}" for each in fields(self))

    def reading(self, size: float, values: float, requests: float | None) -> float:
        """Nanoseconds of a core for reading bytes of so many values; `requests` to a store, None on this machine."""
        decoded = size * self.decoded_byte + values * self.decoded_value
        if requests is None:
            return size * self.byte + decoded
        return size * self.remote_byte + decoded + requests * self.remote_request

    @property
    def most_reading(self) -> float:
        """Nanoseconds of a core for reading a byte that is a value."""
        return self.reading(1.0, 1.0, None)

    def least_bytes(self, cores: int) -> int:
        """Bytes of a scan for which no build pays, if each byte is a row that is shuffled, sorted and joined."""
        spent = self.most_reading + self.shuffled_row
        return int(self.driver_build * cores / spent) if spent else 0

    def planned_bytes(self, cores: int) -> int:
        """Bytes of a scan that are read and decoded in the time of planning it by keys."""
        spent = self.most_reading
        return int(self.planned_scan * cores / spent) if spent else 0

    @property
    def shuffled_row(self) -> float:
        """Nanoseconds of a core for a row of a join that shuffles and sorts both of its sides."""
        return self.exchanged_row + self.sorted_row + self.joined_row


def _entry(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name.strip(), float(number)
    except ValueError:
        raise ValueError(f"found {text.strip()!r}, expected name=nanoseconds") from None
