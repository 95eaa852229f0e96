"""Which containers key filters rule out: by each column for itself, and by the keys of several columns together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from pruning.domain import Domain
from pruning.key_points import KeyPoints
from pruning.skipping import Pruned, prune
from pruning.statistics import Containers


class Keys(Protocol):
    """What `prune_by` asks of a filter."""

    @property
    def domains(self) -> Mapping[str, Domain]: ...  # noqa: D102
    @property
    def points(self) -> KeyPoints | None: ...  # noqa: D102


def column_domains(filters: Sequence[Keys]) -> dict[str, Domain]:
    """What each column must hold under all filters together."""
    domains: dict[str, Domain] = {}
    for each in filters:
        for name, domain in each.domains.items():
            domains[name] = domains[name].intersect(domain) if name in domains else domain
    return domains


def prune_by(containers: Containers, filters: Sequence[Keys]) -> Pruned:
    """Keep the containers that may hold a row which all filters let pass."""
    found = prune(containers, column_domains(filters))
    for each in filters:
        if each.points is not None:
            found = _without_points(containers, found, each.points)
    return found


def _without_points(containers: Containers, found: Pruned, points: KeyPoints) -> Pruned:
    left = np.flatnonzero(found.kept)
    columns = {name: containers.columns[name].take(left) for name in points.names if name in containers.columns}
    # Keys of one column have ruled out what they do.
    if len(columns) < 2 or not len(left):
        return found
    gone = np.zeros(len(containers), bool)
    gone[left] = ~points.lie_in(columns)
    return found.without(gone)
