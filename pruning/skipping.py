"""Which containers cannot hold a matching row.

Soundness: a skipped container holds no row that the join could use; whatever is unknown is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from pruning import intervals
from pruning.byte_strings import IntArray
from pruning.domain import Domain
from pruning.intervals import BoolArray
from pruning.statistics import ColumnStatistics, Containers


class Cause(IntEnum):
    """Why a container is skipped; `KEPT` where it is not. The first of this list that applies is the one recorded."""

    KEPT = 0
    NO_ROWS = 1
    NO_KEYS = 2
    PARTITION = 3
    ALL_NULL = 4
    STATISTICS = 5

    @property
    def label(self) -> str:
        """The cause in plain words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """The outcome for `n` containers: `kept[i]`, and the cause where it is False."""

    kept: BoolArray
    causes: npt.NDArray[np.int8]

    @property
    def kept_count(self) -> int:
        """How many containers are kept."""
        return int(np.count_nonzero(self.kept))

    def without(self, gone: BoolArray) -> Pruned:
        """The same, with the containers where `gone` is True skipped by their statistics, if nothing skips them yet."""
        gone = self.kept & gone
        return Pruned(self.kept & ~gone, np.where(gone, np.int8(Cause.STATISTICS), self.causes))

    def take(self, indices: IntArray) -> Pruned:
        """The outcome for the containers at `indices`."""
        return Pruned(self.kept[indices], self.causes[indices])

    def skipped_by(self) -> dict[str, int]:
        """How many containers each cause skipped; causes that skipped none are left out."""
        counts = np.bincount(self.causes, minlength=len(Cause))
        return {cause.label: int(counts[cause]) for cause in Cause if cause is not Cause.KEPT and counts[cause]}


def prune(containers: Containers, domains: Mapping[str, Domain]) -> Pruned:
    """Keep the containers that may hold a row whose every column of `domains` lies in its domain.

    Columns without statistics keep everything. One pass per column over arrays; no Python object per container.
    """
    causes = np.where(containers.rows == 0, np.int8(Cause.NO_ROWS), np.int8(Cause.KEPT))
    for name, domain in domains.items():
        if domain.is_none:
            causes = _first(causes, np.full(len(causes), Cause.NO_KEYS, np.int8))
        elif name in containers.columns:
            causes = _first(causes, column_causes(containers.columns[name], containers, domain))
    return Pruned(causes == Cause.KEPT, causes)


def skip_all(containers: Containers) -> Pruned:
    """Keep none: there is no key that a row could match."""
    causes = np.where(containers.rows == 0, np.int8(Cause.NO_ROWS), np.int8(Cause.NO_KEYS))
    return Pruned(np.zeros(len(containers), bool), causes)


def column_causes(column: ColumnStatistics, containers: Containers, domain: Domain) -> npt.NDArray[np.int8]:
    """The `Cause` of each container under the domain of one column."""
    all_null = column.all_null(containers.rows)
    keys, bounds, _ = column.against(domain.ranges)
    value = ~all_null & intervals.overlap(keys, *bounds)
    null = domain.null & (column.null_count != 0)
    nan = domain.nan & column.may_have_nan & ~all_null
    out = np.int8(Cause.PARTITION if column.is_partition else Cause.STATISTICS)
    cause = np.where(all_null & (not column.is_partition), np.int8(Cause.ALL_NULL), out)
    return np.where(value | null | nan, np.int8(Cause.KEPT), cause)


def _first(known: npt.NDArray[np.int8], found: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Of two causes for each container the one that comes first, KEPT being none."""
    return np.where((known == Cause.KEPT) | ((found != Cause.KEPT) & (found < known)), found, known)
