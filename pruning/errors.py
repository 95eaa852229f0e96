"""Errors a caller can meet: all derive from `PruningError`.

A user's mistake raises one of these at once. Trouble inside pruning never raises: it gives the
unpruned answer and a `Reason`. Message rule: what was asked, what was found, what to do.
"""

from __future__ import annotations


class PruningError(Exception):
    """Base of every error this package raises on purpose."""


class EnvironmentProblem(PruningError):
    """The machine lacks what a session needs (Java, Python worker, a package)."""


class InvalidOptionError(PruningError, ValueError):
    """An option has a value outside its range, or a name that does not exist."""


class SourceNotFoundError(PruningError):
    """No table is there: not at the path, not in the catalog, or not at that version."""


class ColumnNotFoundError(PruningError):
    """The table has no such column."""


class InvalidKeysError(PruningError, ValueError):
    """Keys that cannot be read, or cannot be compared with their probe column."""


class InvalidQueryError(PruningError, ValueError):
    """The text of a command line is no query, or one that Spark does not understand."""


class UnsupportedTypeError(PruningError, TypeError):
    """A type whose values have no order that storage statistics share."""


class UnsupportedSessionError(PruningError):
    """The session cannot do what was asked (Spark Connect has no JVM plan)."""


class InvalidDataFrameError(PruningError, TypeError):
    """The argument for a DataFrame is none."""


class NotPrunedReadError(PruningError):
    """The DataFrame did not come from `pruned_read()` or `prune()`, so nothing was measured about it."""
