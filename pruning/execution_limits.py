"""`ExecutionLimits`: where the work that was decided on is done, how long it may wait, and how much is kept of it.

They change seconds and memory, and neither which containers are skipped nor which rows come out. Numbers of the work
that nobody has a reason to set, such as threads and bytes of a message, are constants of the modules that use them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pruning.settings import UNBOUNDED, limit

# Java counts rows and files in 32 bits, and a day is longer than any wait.
_JAVA_INT = (1 << 31) - 1
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """The part of the table of limits that says how to do the work; see `pruning.limits.Limits`."""

    # Builds.
    driver_rows: int = limit(
        100_000,
        "rows",
        "keys of so few rows a partition come to the driver: a shuffle and Python workers take ten times as long",
        0,
        0,
        _JAVA_INT,
    )
    driver_long_rows: int = limit(
        10_000, "rows", "texts and long decimals take some ten times the bytes of a number", 0, 0, _JAVA_INT
    )
    driver_scan_files: int = limit(
        4,
        "files",
        "a build over so few is computed on the driver without a job, one file after the other",
        0,
        0,
        _JAVA_INT,
    )
    driver_scan_bytes: int = limit(
        16 << 20, "bytes", "files of a build on the driver, and its rows: more are read faster by several tasks", 0
    )
    driver_scan_rows: int = limit(
        2_000_000, "rows", "files compress some rows to nothing, but each is tested on the driver", 0
    )
    driver_scan_seconds: float = limit(
        1.0, "seconds", "a build that takes longer on the driver is run as a job, for which nothing is lost", 0, 0, 3600
    )

    # Reports.
    report_wait_seconds: float = limit(
        5.0, "seconds", "a report waits for Spark to write down the end of an action", 0.0, 0.0, _DAY
    )

    # Sessions that prune every query.
    history_queries: int = limit(
        100, "queries", "the latest ones of a session, whose plans are kept in memory for its history", 1, 1
    )
    refused_queries: int = limit(
        256, "queries", "those with nothing to prune are not planned again; a dashboard has fewer", 0
    )
    refused_query_seconds: float = limit(
        600.0,
        "seconds",
        "after this time such a query is planned again, since rates and files may have changed",
        0.0,
        0.0,
        _DAY,
    )
    other_sessions: int = limit(
        16, "sessions", "those of streams and of a server's clients, whose statistics are kept", 1, 1
    )
    other_session_seconds: float = limit(
        600.0, "seconds", "without a query, after which such a session is dropped", 0.0, 0.0, _DAY
    )

    # Lists of files.
    listed_files: int = limit(
        160_000,
        "files",
        "the lists of an application have no more together, at about a kilobyte each; the least recently used go",
        UNBOUNDED,
    )
