"""The public names of `pruning` under the name of the distribution: `import scanprune`."""

from typing import TYPE_CHECKING

import pruning
from pruning import (
    ColumnNotFoundError,
    EnvironmentProblem,
    Explanation,
    InvalidDataFrameError,
    InvalidKeysError,
    InvalidOptionError,
    InvalidQueryError,
    KeySummary,
    Limits,
    NotPrunedReadError,
    PruneReport,
    PruningCache,
    PruningError,
    PruningOptions,
    Reason,
    ReasonCode,
    SourceNotFoundError,
    UnsupportedSessionError,
    UnsupportedTypeError,
    disable,
    enable,
    explain,
    history,
    prune,
    pruned_read,
    report,
)

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
    from pruning import spark_session
else:

    def __getattr__(name: str) -> object:
        """`spark_session`, which `pruning`, too, loads when it is asked for."""
        if name == "spark_session":
            return pruning.spark_session
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


if __name__ == "__main__":
    from connectors.cli.main import main

    main()
