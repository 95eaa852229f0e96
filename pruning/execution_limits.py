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
    flags_span: int = limit(
        1 << 20, "numbers", "a byte for each is looked up twice as fast as a bit, while they fit a processor's cache", 0
    )
    bitmap_bytes: int = limit(
        64 << 20, "bytes", "a bitmap that outgrows a processor's caches is no faster than a search of the keys", 0
    )
    bitmap_bytes_per_key: int = limit(
        1 << 10, "bytes", "a bitmap that is nearly empty is no faster than a search of the keys", UNBOUNDED
    )
    listed_keys: int = limit(16 << 20, "keys", "keys of a bitmap or a hash table are listed once, at 8 bytes each", 0)
    compared_ranges: int = limit(2, "ranges", "so few are compared faster than a bit is looked up", 0)
    compared_text_ranges: int = limit(8, "ranges", "texts are compared with so few faster than their codes are made", 0)
    hashed_per_range: int = limit(
        4, "ratio", "a hash table of the values, larger than their ranges by more, is slower than a search of these", 0
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

    # Tables, and scans by Spark's reader.
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

    # Tasks of a scan by pyarrow.
    arrow_task_bytes: int = limit(
        8 << 20, "bytes", "a task costs some milliseconds, so it should have some to do", UNBOUNDED, 1
    )
    arrow_footers_bytes: int = limit(
        8 << 20, "bytes", "footers that go with the tasks of a scan; if they are more, each task reads its own", 0
    )
    task_payload_bytes: int = limit(
        512 << 10, "bytes", "more goes as a broadcast: PySpark deletes no file of a function beyond 1 MiB", 0
    )
    listed_versions: int = limit(
        64,
        "versions",
        "lists of files of whole table versions that a session keeps: the queries of TPC-DS read 24 tables in turn",
        UNBOUNDED,
        1,
    )
    listed_files: int = limit(
        160_000,
        "files",
        "the lists that a session keeps have no more together, at about a kilobyte each; the least recently used go",
        UNBOUNDED,
    )
    listed_version_files: int = limit(
        10_000,
        "files",
        "the files of a larger table version are listed for each scan, not kept in memory",
        UNBOUNDED,
    )
    fingerprint_files: int = limit(
        32,
        "files",
        "looking at each file of a build, before and after it, costs more than the build",
        UNBOUNDED,
    )
    counted_executions: int = limit(
        32, "executions", "counts of a scan are kept for the latest, of any number of actions", UNBOUNDED, 1
    )

    # Batches of a task.
    batch_rows: int = limit(
        1 << 16,
        "rows",
        "a batch from Python to Spark has at most so many, however small they are",
        _JAVA_INT,
        1,
        _JAVA_INT,
    )
    batch_bytes: int = limit(
        16 << 20,
        "bytes",
        "a task holds a few batches of about this size, and tests as many values at once",
        UNBOUNDED,
        1,
    )
    first_batch_rows: int = limit(
        1 << 10, "rows", "how large values are shows only once the first are decoded", _JAVA_INT, 1, _JAVA_INT
    )
    batch_growth: int = limit(
        4,
        "ratio",
        "a batch has so many times the rows of the one before at most, since values differ in size",
        _JAVA_INT,
        1,
        _JAVA_INT,
    )
    kept_key_bytes: int = limit(
        64 << 20, "bytes", "decoded key columns of a row group are kept for its rows; more are read again", 0
    )
    useless_pass_ratio: float = limit(
        0.95, "share", "a test that lets more of the rows pass costs more than it saves", 2.0
    )
    observed_rows: int = limit(100_000, "rows", "fewer do not say that a test is useless", UNBOUNDED)
    row_groups_ahead: int = limit(
        8, "row groups", "a store is asked for the chunks of so many while the first is decoded", 1, 1
    )

    # Requests to a store.
    store_requests: int = limit(8, "requests", "a task has at most so many under way for one file", 1, 1, 1000)
    store_request_bytes: int = limit(
        8 << 20, "bytes", "neighbours are joined up to here: a round trip takes as long as some megabytes", 0
    )
    store_attempts: int = limit(
        6,
        "attempts",
        "Arrow waits longer from each to the next: six are some seconds, and Spark runs a task again",
        1,
        1,
        100,
    )
    store_connect_seconds: float = limit(
        10.0, "seconds", "a store that takes no connection by then is asked once more", _DAY, 0.001, _DAY
    )
    store_answer_seconds: float = limit(
        60.0, "seconds", "a request of a task is made once more if a store has not answered by then", _DAY, 0.001, _DAY
    )
    store_trial_seconds: float = limit(
        5.0,
        "seconds",
        "the driver waits for a first answer of each store, before it gives workers the scan",
        _DAY,
        0.01,
        _DAY,
    )
