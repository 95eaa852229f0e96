"""One sentence for a query that no filter prunes: the reason that says most, and what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pruning.reasons import Reason, ReasonCode

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
        ReasonCode.NO_STATISTICS: "collect statistics of the column (for Delta, `delta.dataSkippingStatsColumns`)",
        ReasonCode.SKIPPING_DISABLED: "set the session's conf for skipping back to its default",
        ReasonCode.NOT_VECTORISED: "switch the vectorised Parquet reader on",
        ReasonCode.COMPUTED: "join by a stored column",
        ReasonCode.BUILD_TOO_LARGE: "add a condition to the small side, or raise `max_build_scan_bytes`",
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
