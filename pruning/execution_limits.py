"""`ExecutionLimits`: how the work that was decided on is cut into tasks, batches, requests and waits.

They change seconds and memory, and neither which containers are skipped nor which rows come out.
"""

from __future__ import annotations

from dataclasses import dataclass

from pruning.settings import UNBOUNDED, limit

# Java counts rows and partitions in 32 bits, and a day is longer than any wait.
_JAVA_INT = (1 << 31) - 1
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """The part of the table of limits that says how to do the work; see `pruning.limits.Limits`."""

    # Key sets.
    key_buffer_bytes: int = limit(
        16 << 20, "bytes", "keys wait unsorted up to here, or as many as are sorted: each sort takes all of them", 0
    )

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
    driver_partitions: int = limit(
        32,
        "partitions",
        "each gives up to `driver_rows` or `joined_rows`, and all of them share a driver",
        _JAVA_INT,
        1,
        _JAVA_INT,
    )
    driver_key_bytes: int = limit(256, "bytes", "one longer key has the workers collect all of them", 0)
    driver_build_bytes: int = limit(
        64 << 20, "bytes", "a build that reads less may run a second time, if it has too many rows for the driver", 0
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
    whole_log_files: int = limit(
        2_000, "files", "statistics of all columns of so few files are fetched by one job: each takes 0.2 s", -1, -1
    )
    whole_log_columns: int = limit(32, "columns", "tables keep statistics of so many columns by default", 0)
    key_message_bytes: int = limit(
        2 << 20,
        "bytes",
        "pieces of a partial key set fit a row of a shuffle and a message of Spark Connect",
        UNBOUNDED,
        1,
    )
    poll_seconds: float = limit(
        0.2, "seconds", "builds that run are looked at again after this time", 0.001, 0.001, _DAY
    )
    cancel_seconds: float = limit(
        2.0, "seconds", "cancelled jobs end within this time, unless the driver still plans them", 0.0, 0.0, _DAY
    )
    progress_seconds: float = limit(2.0, "seconds", "builds that are faster show no progress", _DAY, 0.0, _DAY)
    progress_line_seconds: float = limit(10.0, "seconds", "a log gets a line of progress no more often", 0.0, 0.0, _DAY)

    # Tables and scans.
    footer_threads: int = limit(
        16, "threads", "footers are read by the driver: 1,000 of 96 column chunks take 1.9 s", 1, 1, 1000
    )
    footer_tail_bytes: int = limit(
        64 << 10, "bytes", "the end of a file that is read at once holds all of nearly every footer", 8, 8, 1 << 30
    )
    footer_replies: int = limit(
        8, "replies", "a footer comes from the JVM in small replies, since a large one waits 40 ms", 0
    )
    broadcast_key_bytes: int = limit(
        64 << 20, "bytes", "keys of a semi join go to every executor; more are shuffled to the rows", 0
    )
    ranges_in_a_row: int = limit(4, "ranges", "so many are compared one after the other, more by halves", UNBOUNDED, 1)
    report_wait_seconds: float = limit(
        5.0, "seconds", "a report waits for Spark to write down the end of an action", 0.0, 0.0, _DAY
    )
    report_poll_seconds: float = limit(
        0.01, "seconds", "a report looks again for the end of an action after this time", 0.001, 0.001, _DAY
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
    interrupt_again_seconds: float = limit(
        0.05,
        "seconds",
        "an interrupt while a query is planned comes again after this time, when it runs",
        0.0,
        0.0,
        _DAY,
    )

    # Lists of files, and counts of what actions read.
    listed_files: int = limit(
        160_000,
        "files",
        "the lists of an application have no more together, at about a kilobyte each; the least recently used go",
        UNBOUNDED,
    )
    fingerprint_files: int = limit(
        32,
        "files",
        "looking at each file of a build, before and after it, costs more than the build",
        UNBOUNDED,
    )
