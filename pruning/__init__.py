"""Storage-level scan pruning: the build side of a join becomes a filter on the scan of its probe side."""

from pruning.cache import PruningCache
from pruning.errors import PruningError
from pruning.explanation import Explanation
from pruning.key_summary import KeySummary
from pruning.options import PruningOptions
from pruning.prune_report import PruneReport
from pruning.query_explanation import QueryExplanation
from pruning.read import explain, prune, pruned_read, report

__all__ = [
    "Explanation",
    "KeySummary",
    "PruneReport",
    "PruningCache",
    "PruningError",
    "PruningOptions",
    "QueryExplanation",
    "explain",
    "prune",
    "pruned_read",
    "report",
]
