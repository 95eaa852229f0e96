"""Storage-level scan pruning: the build side of a join becomes a filter on the scan of its probe side."""

from typing import TYPE_CHECKING

from pruning import api
from pruning.api import disable, enable, explain, history, prune, pruned_read, report
from pruning.errors import (
    ColumnNotFoundError,
    EnvironmentProblem,
    InvalidDataFrameError,
    InvalidKeysError,
    InvalidOptionError,
    InvalidQueryError,
    NotPrunedReadError,
    PruningError,
    SourceNotFoundError,
    UnsupportedSessionError,
    UnsupportedTypeError,
)
from pruning.keys.cache import PruningCache
from pruning.keys.summary import KeySummary
from pruning.limits import Limits
from pruning.options import PruningOptions
from pruning.reasons import Reason, ReasonCode
from pruning.results.explanation import Explanation
from pruning.results.prune_report import PruneReport

__all__ = [
    "ColumnNotFoundError",
    "EnvironmentProblem",
    "Explanation",
    "InvalidDataFrameError",
    "InvalidKeysError",
    "InvalidOptionError",
    "InvalidQueryError",
    "KeySummary",
    "Limits",
    "NotPrunedReadError",
    "PruneReport",
    "PruningCache",
    "PruningError",
    "PruningOptions",
    "Reason",
    "ReasonCode",
    "SourceNotFoundError",
    "UnsupportedSessionError",
    "UnsupportedTypeError",
    "disable",
    "enable",
    "explain",
    "history",
    "prune",
    "pruned_read",
    "report",
    "spark_session",
]

if TYPE_CHECKING:
    from pruning.api import spark_session
else:

    def __getattr__(name: str) -> object:
        """`spark_session`, whose module is loaded when it is asked for: importing this package loads no connector."""
        if name == "spark_session":
            return api.spark_session
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
