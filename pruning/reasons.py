"""`Reason`: why a filter was left out, weakened or refused: a code for programs, a sentence and a remedy for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class ReasonCode(Enum):
    """The reasons for which a filter is left out, weakened or refused; the value is the sentence."""

    SWITCHED_OFF = "pruning is switched off by the option `enabled`"
    NO_STATISTICS = "storage has no statistics of the column"
    INT96 = "its timestamps are stored as INT96, of which Parquet files keep no statistics"
    UNSUPPORTED_TYPE = "columns of this type cannot be compared with keys by their statistics"
    COLLATED = "a collation other than UTF8_BINARY orders the column in another way than its statistics"
    CHAR_PADDED = "values of char(n) are padded when they are read, so stored bounds and keys differ"
    INEXACT_CAST = "the keys cannot be cast to the column's type without losing or adding matches"
    NAN_KEYS = "a key is NaN, which the minimum and maximum of a column do not cover"
    COLUMNS_APART = "keys of several columns are compared column by column, not together"
    UNCLUSTERED = "every container may hold one of the keys"
    NO_ROW_GROUPS_READ = "footers were not read"
    KEYS_OVER_LIMIT = "there are more keys than the limits allow, so coarse ranges and a bloom filter replace them"
    BLOOM_TOO_FULL = "the bloom filter is too full to tell keys apart"
    BUILD_TIMED_OUT = "collecting the keys took longer than the limit"
    BUILD_FAILED = "collecting the keys failed"
    BUILD_RAISED = "an expression failed on a row while the keys were collected"
    BUILD_CANCELLED = "collecting the keys was cancelled from outside, as by the job group of the query"
    STATISTICS_FAILED = "reading the statistics failed"
    WRONG_METADATA = "the writer of its files is known to write wrong statistics, so they are not believed"
    STALE_NAMES = "columns keep other names of a column mapping that is off, so statistics may be of other columns"
    UNSELECTIVE = "a row filter is not expected to drop enough rows to pay"
    NOT_VECTORISED = "the scan is not vectorised, where page skipping can return wrong values"
    NO_READER_FILTER = "the Parquet reader takes no predicate on the column, so no row group is skipped by it"
    SKIPPING_DISABLED = "a conf of the session switches this kind of skipping off"
    PRUNING_FAILED = "pruning failed"
    INVALID_OPTION = "an option of the session is not understood"
    UNKNOWN_VERSION = "scanprune does not know the internals of this version, so it prunes nothing"
    NO_JVM = "the session has no JVM plan (Spark Connect)"
    UNPINNED_KEYS = "the keys are not pinned: their query may give other keys when it runs again"
    UNREPEATABLE_KEYS = "the keys come from a query that may give other rows when it runs again"
    OUTER_SIDE = "rows of this side reach the result without a match"
    KEYLESS_OPERAND = "an operand of the OR also holds for rows without a key"
    MAY_RAISE = "an expression above may fail on rows that the query does not have without a filter here"
    MAY_MOVE = "Spark optimises a pruned query again, and may move an expression to rows for which it fails"
    NULL_SAFE = "the join matches NULLs, and one of the keys is NULL"
    NULL_AWARE = "NULL may match, too, and keys do not include NULL"
    NONDETERMINISTIC = "it is nondeterministic: on fewer input rows it may give other rows"
    LIMITED = "a limit chooses among all rows below it"
    SAMPLED = "a sample is drawn from all rows below it"
    GROUPING_SETS = "grouping sets add rows with NULL in place of the key"
    STREAMING = "the query is a stream, whose rows keep arriving after keys are collected"
    STATEFUL = "it keeps state between micro-batches, or may, which is left as it is"
    NO_ROWS_LEFT = "no row of a joined table has a key of the micro-batch, whose rows Spark would then not count"
    EFFECT_BESIDE = "rows or functions beside the scan are observed, and Spark may not run them beside fewer rows"
    CACHED = "the rows are cached, so no file is read"
    NOT_FILES = "it reads no files of a known table format"
    CONSTANT_KEY = "a constant of the expression is a key, so that every row may match"
    COMPUTED = "the key is computed, and no values of a column follow from it"
    NOT_GROUPED = "it mixes rows of different keys"
    OPAQUE = "the effect of this operator on rows is not known"
    UNSELECTIVE_BUILD = "nothing on the build side leaves out a row"
    TOO_MANY_ROWS = "the build gave too many rows to be joined as a local relation"
    RESULT_TOO_LARGE = "the build gave more bytes than `spark.driver.maxResultSize` lets the driver receive"
    NOT_CACHED = "the result of the build is not cached"
    READ_BY_BUILD = "the scan is read by a build, whose rows take its place in the query"
    RUN_ONCE = "Spark runs this subtree once for several parts of the query; a filter on some would make it run again"
    TOO_FEW_FIRST_ROWS = "statistics do not prove that the examined files hold enough rows for the LIMIT"
    COMMAND = "the command needs every row of its target"
    NOT_WORTH = "a filter is expected to cost more than it saves"
    RISKY = "a filter may lose too much beside what it is expected to gain"
    IDLE_BEFORE = "its keys skipped nothing and dropped no row in an earlier query of this form"


@dataclass(frozen=True, slots=True)
class Reason:
    """One refusal: its code, the column, scan or build that it concerns, and a detail such as an error.

    >>> print(Reason(ReasonCode.UNCLUSTERED, "`item_sk`"))
    `item_sk`: every container may hold one of the keys
    """

    code: ReasonCode
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.code.value}" + (f" ({self.detail})" if self.detail else "")

    @property
    def remedy(self) -> str:
        """An imperative for the user; it begins with "nothing" if there is nothing to be done."""
        return _REMEDIES.get(self.code) or _OTHER_REMEDIES[self.code]

    def to_dict(self) -> dict[str, str]:
        """Code, subject, text and detail for machines."""
        return {"code": self.code.name, "subject": self.subject, "text": self.code.value, "detail": self.detail}


# No container has bounds of the column.
WITHOUT_BOUNDS = frozenset({ReasonCode.NO_STATISTICS, ReasonCode.INT96})
# A build began and gave no keys, which says nothing of an equal query.
UNFINISHED = frozenset(
    {ReasonCode.BUILD_CANCELLED, ReasonCode.BUILD_FAILED, ReasonCode.BUILD_RAISED, ReasonCode.BUILD_TIMED_OUT}
)
# Metadata was asked for, and could not be read.
UNREAD = frozenset({ReasonCode.STATISTICS_FAILED, ReasonCode.BUILD_CANCELLED})
_NO_REMEDY = "nothing"
_NO_JOIN = (
    "nothing was pruned, since no comparison of a join reaches a scan of files; "
    "try: join by stored columns, in the query that reads them"
)
# Remedies in order of rank: `why_nothing` names the first code of a query that is in this table.
_REMEDIES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.SWITCHED_OFF: "set the option `enabled` to True",
        ReasonCode.UNKNOWN_VERSION: "use a version of Spark that this release knows",
        ReasonCode.INVALID_OPTION: "set that conf to what is expected, or unset it",
        ReasonCode.PRUNING_FAILED: "log the logger `scanprune` at level DEBUG, and report the error",
        ReasonCode.STREAMING: "enable(spark) before the stream starts, or prune the batch inside of foreachBatch",
        ReasonCode.STATEFUL: "join static tables in a stream of its own, or inside of foreachBatch",
        ReasonCode.NO_JVM: "name the keys to pruned_read()",
        ReasonCode.BUILD_FAILED: "run the small side by itself to see its error",
        ReasonCode.BUILD_RAISED: "run the small side by itself to see its error",
        ReasonCode.BUILD_CANCELLED: "run the query again",
        ReasonCode.BUILD_TIMED_OUT: "raise `build_timeout_seconds`, or cache the small side",
        ReasonCode.STATISTICS_FAILED: "check that the files named there can be read",
        ReasonCode.WRONG_METADATA: "write the files again with Spark, or a newer version of their writer",
        ReasonCode.STALE_NAMES: "write the rows to a new table",
        ReasonCode.UNREPEATABLE_KEYS: "localCheckpoint() the small side",
        ReasonCode.EFFECT_BESIDE: "localCheckpoint() the part that is observed or calls the function",
        ReasonCode.RESULT_TOO_LARGE: "raise `spark.driver.maxResultSize` where the session starts",
        ReasonCode.UNPINNED_KEYS: "cache() the small side",
        ReasonCode.NO_STATISTICS: "have the table's format collect statistics of the column",
        ReasonCode.INT96: "set `spark.sql.parquet.outputTimestampType` to TIMESTAMP_MICROS, and write the files again",
        ReasonCode.SKIPPING_DISABLED: "set the session's conf for skipping back to its default",
        ReasonCode.NOT_VECTORISED: "switch the vectorised Parquet reader on",
        ReasonCode.MAY_RAISE: "use try_divide, try_cast or another try_ function, or nullif(divisor, 0)",
        ReasonCode.MAY_MOVE: "use try_cast, try_add or another try_ function in IN, EXISTS and outer joins",
        ReasonCode.COMPUTED: "join by a column, or by a function of one that README lists; sort by a column",
        ReasonCode.UNCLUSTERED: "write the table sorted by the key (OPTIMIZE ... ZORDER BY, CLUSTER BY)",
        ReasonCode.UNSELECTIVE_BUILD: "add a condition to the small side",
        ReasonCode.UNSELECTIVE: "nothing: most rows are expected to match",
        ReasonCode.RISKY: "the option `always` if you know that few rows match",
        ReasonCode.NOT_WORTH: "nothing, or the option `always` if you know better",
        ReasonCode.IDLE_BEFORE: "nothing, or the option `always`: the session tries it again after a few more queries",
        ReasonCode.NOT_FILES: "read the table from files",
        ReasonCode.OUTER_SIDE: "nothing: the join keeps rows without a match",
    }
)
# Remedies without a rank: one is named only for a query that has no reason of the table above.
_OTHER_REMEDIES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.UNSUPPORTED_TYPE: "join by a column of numbers, strings, dates or timestamps",
        ReasonCode.COLLATED: "join by a column with the collation UTF8_BINARY",
        ReasonCode.CHAR_PADDED: "declare the column as STRING or VARCHAR",
        ReasonCode.INEXACT_CAST: "cast the keys to the column's type",
        ReasonCode.NAN_KEYS: "leave NaN out of the keys",
        ReasonCode.CONSTANT_KEY: "leave the constant out of the keys",
        ReasonCode.COLUMNS_APART: "cast the keys to the columns' types, or pass fewer keys",
        ReasonCode.NO_ROW_GROUPS_READ: "raise `limits.max_footers`",
        ReasonCode.KEYS_OVER_LIMIT: "raise `limits.max_build_keys`, or `max_build_bytes` if keys are long",
        ReasonCode.BLOOM_TOO_FULL: "raise `limits.max_build_keys`, or `max_build_bytes` if keys are long",
        ReasonCode.NO_READER_FILTER: "store the column in a type on which Spark pushes predicates to Parquet",
        ReasonCode.NULL_SAFE: "leave NULL out of the small side, or join by =",
        ReasonCode.NULL_AWARE: "write NOT EXISTS in place of NOT IN, or IS NOT NULL in its subquery, if NULL is no key",
        ReasonCode.NONDETERMINISTIC: "compute the nondeterministic expression after the join",
        ReasonCode.LIMITED: "apply the limit after the join, if any rows will do",
        ReasonCode.SAMPLED: "draw the sample after the join, if any rows will do",
        ReasonCode.GROUPING_SETS: "join before the grouping sets",
        ReasonCode.CACHED: "cache() the result of the join in place of the table",
        ReasonCode.NOT_GROUPED: "group by the key of the join, too, if the query allows it",
        ReasonCode.OPAQUE: "join before this operator; asNondeterministic() keeps a function of yours above the join",
        ReasonCode.TOO_MANY_ROWS: "nothing: the build would read more than its keys can skip",
        ReasonCode.NOT_CACHED: "nothing: the build runs for each query",
        ReasonCode.KEYLESS_OPERAND: "nothing: a filter would lose rows",
        ReasonCode.READ_BY_BUILD: "nothing: the query does not read the scan again",
        ReasonCode.RUN_ONCE: "nothing: reading the subtree again would cost more",
        ReasonCode.NO_ROWS_LEFT: "nothing: the progress of the stream has to tell of all rows that have arrived",
        ReasonCode.COMMAND: "nothing: MERGE skips files where rows without a match stay as they are",
        ReasonCode.TOO_FEW_FIRST_ROWS: "order by a column that has statistics, and leave other conditions out",
    }
)
_RANKS = {code: rank for rank, code in enumerate(_REMEDIES)}


def why_nothing(reasons: Sequence[Reason]) -> str:
    """The sentence for a query without a filter, from everything that was refused for it.

    >>> print(why_nothing([Reason(ReasonCode.CACHED, "items"), Reason(ReasonCode.UNCLUSTERED, "k")]).partition(";")[0])
    nothing was pruned, since k: every container may hold one of the keys
    """
    if not reasons:
        return _NO_JOIN
    chosen = min(reasons, key=lambda each: _RANKS.get(each.code, len(_RANKS)))
    return f"nothing was pruned, since {chosen}; try: {chosen.remedy}"


def remedies(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """A line for each code for which the user can do something: its text, and the remedy.

    >>> remedies([Reason(ReasonCode.CACHED, "items"), Reason(ReasonCode.RUN_ONCE, "`k`")])
    ('the rows are cached, so no file is read: cache() the result of the join in place of the table',)
    """
    found = {each.code: each.remedy for each in reasons}
    return tuple(f"{code.value}: {text}" for code, text in found.items() if not text.startswith(_NO_REMEDY))


def size(count: int | None) -> str:
    """A number of bytes with its unit.

    >>> size(1536), size(12), size(None)
    ('1.5 KiB', '12 B', 'unknown')
    """
    if count is None:
        return "unknown"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
