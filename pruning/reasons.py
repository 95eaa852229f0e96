"""Reasons: why something was not done, as a code for machines, a sentence for people, and what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class ReasonCode(Enum):
    """Every way a filter is left out, weakened or refused."""

    SWITCHED_OFF = "pruning is switched off by the option `enabled`"
    NO_STATISTICS = "storage has no statistics of the column"
    UNSUPPORTED_TYPE = "values of this type cannot be pruned by"
    COLLATED = "a collation other than UTF8_BINARY orders the column otherwise than its statistics"
    CHAR_PADDED = "char(n) values are padded on reading, so stored bounds and keys differ"
    INEXACT_CAST = "the keys cannot be brought to the column's type without losing or inventing matches"
    NAN_KEYS = "a key is NaN, which min and max do not cover"
    COLUMNS_APART = "the key columns rule files out one by one, not all of them together"
    UNCLUSTERED = "no container lies wholly between keys"
    NO_ROW_GROUPS_READ = "footers were not read"
    KEYS_OVER_LIMIT = "more keys than the limits allow: only coarse ranges of them and a bloom filter are used"
    BLOOM_TOO_FULL = "the bloom filter is too full to tell keys apart"
    BUILD_TIMED_OUT = "collecting the keys took longer than the limit"
    BUILD_FAILED = "collecting the keys failed"
    STATISTICS_FAILED = "reading the statistics failed"
    UNSELECTIVE = "too many rows would pass for a test of rows to pay"
    NOT_VECTORISED = "the scan is not vectorised, where page skipping can return wrong values"
    NO_READER_FILTER = "the reader of Parquet files takes no predicate on the column, so no row group is skipped by it"
    SKIPPING_DISABLED = "the session switches this kind of skipping off"
    PRUNING_FAILED = "pruning failed"
    UNKNOWN_VERSION = "pruning does not know the internals of this version, so it leaves every read as it is"
    DELETION_VECTORS = "deletion vectors mark rows as gone, which only Spark's own reader follows"
    NOT_READ_BY_ARROW = "Spark's own reader makes the scan, not pyarrow"
    OTHER_VALUES_BY_ARROW = "Spark's own reader makes the scan, since pyarrow may not read just the same values"
    NO_JVM = "the session has no JVM plan (Spark Connect)"
    UNPINNED_KEYS = "the keys are not pinned: a later run of their query may give others"
    UNREPEATABLE_KEYS = "the keys come from a query that may give other rows when it runs again; cache them"
    OUTER_SIDE = "rows of this side reach the result without a match"
    NULL_SAFE = "the equality matches NULLs, and one of the keys is NULL"
    NULL_AWARE = "a NULL may match, too, and keys do not tell of NULLs"
    NONDETERMINISTIC = "it may give other rows when it runs on fewer"
    LIMITED = "a limit chooses among all rows"
    SAMPLED = "a sample chooses among all rows"
    GROUPING_SETS = "grouping sets make rows of their own"
    STREAMING = "rows of a stream go on arriving, and keys are collected once"
    CACHED = "its rows are cached, so no file is read"
    NOT_FILES = "it reads no files of a table format that scanprune knows"
    COMPUTED = "the key is computed, not a column of a scan"
    NOT_GROUPED = "it mixes rows of different keys"
    OPAQUE = "what this operator does with rows is not known"
    UNSELECTIVE_BUILD = "nothing on the build side leaves out a row"
    BUILD_TOO_LARGE = "the build side reads too much to be run beforehand"
    TOO_MANY_ROWS = "the build gave too many rows to be joined as they are"
    NOT_CACHED = "what the build gave is not kept in the cache"
    READ_BY_BUILD = "a build has read its rows, which are joined as they are"
    RUN_ONCE = "Spark runs what reads it once for several parts of the query, which keys of one or of each would end"
    SPARES_LITTLE = "keys could spare the query too little of the scan to be worth a build"
    TOO_FEW_FIRST_ROWS = "what was looked at has not surely as many of the first rows as the limit asks for"
    PROBE_TOO_SMALL = "the scan reads too little to be worth a filter"


@dataclass(frozen=True, slots=True)
class Reason:
    """One refusal: its code, what it is about, and detail such as the error met.

    >>> print(Reason(ReasonCode.UNCLUSTERED, "`item_sk`"))
    `item_sk`: no container lies wholly between keys
    """

    code: ReasonCode
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.code.value}" + (f" ({self.detail})" if self.detail else "")

    def to_dict(self) -> dict[str, str]:
        """Code, subject, text and detail for machines."""
        return {"code": self.code.name, "subject": self.subject, "text": self.code.value, "detail": self.detail}


_NO_JOIN = (
    "nothing was pruned, since no equality of a join reaches a scan of files; "
    "try prune() on the whole query, after its joins"
)
# The codes that a user can do most about come first; a reason of a code that is not here comes last.
_REMEDIES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.SWITCHED_OFF: "set the option `enabled` to True",
        ReasonCode.UNKNOWN_VERSION: "use a version of Spark that this release knows",
        ReasonCode.PRUNING_FAILED: "log the logger `scanprune` at level DEBUG, and report the error",
        ReasonCode.STREAMING: "prune the batch inside of foreachBatch",
        ReasonCode.NO_JVM: "name the keys to pruned_read()",
        ReasonCode.BUILD_FAILED: "run the small side by itself to see its error",
        ReasonCode.BUILD_TIMED_OUT: "raise `build_timeout_seconds`, or cache the small side",
        ReasonCode.STATISTICS_FAILED: "check that the files named there can be read",
        ReasonCode.UNREPEATABLE_KEYS: "cache() the small side",
        ReasonCode.UNPINNED_KEYS: "cache() the small side",
        ReasonCode.NO_STATISTICS: "have the table's format collect statistics of the column",
        ReasonCode.SKIPPING_DISABLED: "set the session's conf for skipping back to its default",
        ReasonCode.NOT_VECTORISED: "switch the vectorised Parquet reader on",
        ReasonCode.COMPUTED: "join by a stored column",
        ReasonCode.BUILD_TOO_LARGE: "add a condition to the small side, or raise `limits.max_build_scan_bytes`",
        ReasonCode.UNCLUSTERED: "write the table sorted by the key (OPTIMIZE ... ZORDER BY, CLUSTER BY)",
        ReasonCode.UNSELECTIVE_BUILD: "add a condition to the small side",
        ReasonCode.UNSELECTIVE: "nothing: most rows match",
        ReasonCode.PROBE_TOO_SMALL: "nothing for tables of this size, or a smaller `min_probe_bytes`",
        ReasonCode.SPARES_LITTLE: "nothing for tables of this size, or a smaller `min_probe_bytes`",
        ReasonCode.NOT_FILES: "read the table from files",
        ReasonCode.OUTER_SIDE: "nothing: the join keeps rows without a match",
    }
)
_RANKS = {code: rank for rank, code in enumerate(_REMEDIES)}


def why_nothing(reasons: Sequence[Reason]) -> str:
    """The sentence for a query without a filter, from everything that was refused for it.

    >>> print(why_nothing([Reason(ReasonCode.COMPUTED, "k + 1")]))
    nothing was pruned, since k + 1: the key is computed, not a column of a scan; try: join by a stored column
    """
    if not reasons:
        return _NO_JOIN
    chosen = min(reasons, key=lambda each: _RANKS.get(each.code, len(_RANKS)))
    remedy = _REMEDIES.get(chosen.code, "explain() names the reason for each scan")
    return f"nothing was pruned, since {chosen}; try: {remedy}"


def size(count: int | None) -> str:
    """Bytes as a person reads them.

    >>> size(1536), size(12), size(None)
    ('1.5 KiB', '12 B', 'unknown')
    """
    if count is None:
        return "unknown"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
