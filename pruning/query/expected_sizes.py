"""`expected_sizes()`: the sizes of a query's scans after filters, as they are expected before any build has run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pruning.query.benefit import Remaining
from pruning.query.build_selection import BuildSelection
from pruning.query.plan import Relation
from pruning.query.plan_statistics import Cardinality, Sizes
from pruning.query.runtime_filter import RuntimeFilter


def expected_sizes(selection: BuildSelection, filters: Sequence[RuntimeFilter]) -> Sizes:
    """The sizes after `filters`: smaller scans, and the rows of builds that are expected to be joined as they are.

    A filter from metadata may skip nothing, which only planning the scan tells, so it counts for nothing.
    """
    sizes, benefits = selection.sizes, selection.benefits
    left: dict[int, tuple[Relation, Remaining]] = {}
    applied = {at: dict(columns) for at, columns in sizes.applied.items()}
    materialized, rows = set(sizes.materialized), dict(sizes.rows)
    for each in filters:
        if each.from_metadata:
            continue
        relation, node = each.probe.relation, each.build_side.node
        _, before = left.get(relation.id, (relation, None))
        left[relation.id] = relation, benefits.effect(each.build_side, each.probe, before).left
        values = sizes.statistics.domain_size(relation, each.probe.column)
        share = benefits.cardinalities.partner_share(each.build_side, each.probe).expected
        if values is not None:
            columns = applied.setdefault(relation.id, {})
            # Further keys of a column leave no more of its values than the fewest.
            columns[each.probe.column] = min(share * values, columns.get(each.probe.column, values))
        if each.build_side.condition.is_equality and benefits.fits(node):
            materialized |= {below.id for below in node.walk()}
            rows[node.id] = int(benefits.cardinalities.rows(node))
    scanned, expected = dict(sizes.scanned), dict(sizes.expected)
    for at, (relation, remaining) in left.items():
        scanned[at] = int(benefits.cost.needed_bytes(relation) * remaining.bytes)
        read = benefits.cardinalities.rows(relation) * remaining.bytes
        passing = benefits.cardinalities.rows(relation) * remaining.rows
        expected[at] = Cardinality(int(read), min(1.0, passing / read) if read else 1.0)
    return replace(
        sizes,
        scanned=scanned,
        expected=expected,
        pruned={*sizes.pruned, *left},
        applied=applied,
        materialized=materialized,
        rows=rows,
    )
