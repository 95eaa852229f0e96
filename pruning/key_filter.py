"""`KeyFilter`: collected keys brought to the columns they filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pruning.domain import Domain
from pruning.reasons import Reason


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """One entry of `keys`, brought to its probe columns.

    `domains` holds what a row must have in each column; a column that is absent is not pruned by, for one of
    the `reasons`. `is_exact` says that a row whose values lie in the domains does match a key, which needs a
    single column. `distinct` is None where there were too many keys to count.
    """

    columns: tuple[str, ...]
    domains: Mapping[str, Domain]
    rows: int
    distinct: int | None
    is_exact: bool
    has_bloom: bool
    source: str
    reasons: tuple[Reason, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True where no row can match."""
        return any(domain.is_none for domain in self.domains.values())
