"""Storage-level scan pruning: the build side of a join becomes a filter on the scan of its probe side."""

from pruning.api import explain, prune, pruned_read, report
from pruning.errors import PruningError
from pruning.keys.cache import PruningCache
from pruning.keys.summary import KeySummary
from pruning.options import PruningOptions
from pruning.results.prune_report import Explanation, PruneReport
from pruning.results.query_explanation import QueryExplanation

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
