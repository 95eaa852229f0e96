"""Errors that the public functions raise; all derive from `PruningError`.

A mistake of the caller raises one of them at once. Trouble inside pruning raises none: it gives the unpruned answer and
a `Reason`. A message says what was asked, what was found and what to do.
"""

from __future__ import annotations


class PruningError(Exception):
    """The base of all errors that this package raises."""


class EnvironmentProblem(PruningError):
    """Java, a package or a Python worker that a session needs is missing."""


class InvalidOptionError(PruningError, ValueError):
    """An option has a value outside its range, or a name that does not exist."""


class SourceNotFoundError(PruningError):
    """There is no table at the path, in the catalog, or at the version."""


class ColumnNotFoundError(PruningError):
    """The table has no such column."""


class InvalidKeysError(PruningError, ValueError):
    """Keys that cannot be read, or cannot be compared with their probe column."""


class InvalidQueryError(PruningError, ValueError):
    """The SQL of a command is no query, or Spark cannot parse it."""


class UnsupportedTypeError(PruningError, TypeError):
    """A type whose values have no order that storage statistics share."""


class UnsupportedSessionError(PruningError):
    """The session has no JVM plan, as with Spark Connect."""


class InvalidDataFrameError(PruningError, TypeError):
    """The argument is no DataFrame of Spark."""


class NotPrunedReadError(PruningError):
    """The DataFrame is not a result of `pruned_read()` or `prune()`, so it has no report."""
