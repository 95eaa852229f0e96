"""`expected_sizes()`: the sizes of a query's scans after filters, as they are expected before any build has run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pruning.query.benefit import Benefits, Remaining
from pruning.query.build_selection import BuildSelection
from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Relation
from pruning.query.plan_statistics import Cardinality, Sizes
from pruning.query.runtime_filter import RuntimeFilter, one_by_build


def expected_sizes(selection: BuildSelection, filters: Sequence[RuntimeFilter]) -> Sizes:
    """The sizes after `filters`: smaller scans, and the rows of builds that are expected to be joined as they are.

    A filter from metadata may skip nothing, which only planning the scan tells, so it counts for nothing.
    """
    sizes, benefits = selection.sizes, selection.benefits
    left: dict[int, tuple[Relation, Remaining]] = {}
    applied = {at: dict(columns) for at, columns in sizes.applied.items()}
    materialized, rows = set(sizes.materialized), dict(sizes.rows)
    by_id = {each.id: each for each in filters}
    for each in filters:
        if each.from_metadata:
            continue
        relation, node = each.probe.relation, each.build_side.node
        _, before = left.get(relation.id, (relation, None))
        if each.other_operands:
            if each.id == min(each.id, *each.other_operands):
                operands = [(by_id[at].build_side, by_id[at].probe) for at in (each.id, *each.other_operands)]
                left[relation.id] = relation, _left_by_any(operands, before, benefits)
        else:
            union = [each, *(by_id[at] for at in each.united if at in by_id)]
            left[relation.id] = relation, _left(union, before, benefits)
            values = sizes.statistics.domain_size(relation, each.probe.column)
            share = _share(union, benefits)
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


def _share(union: Sequence[RuntimeFilter], benefits: Benefits) -> float:
    """The share of values that are keys of one of the builds."""
    shares = (benefits.cardinalities.partner_share(each.build_side, each.probe) for each in one_by_build(union))
    return min(1.0, sum(each.expected for each in shares))


def _left_by_any(
    operands: Sequence[tuple[BuildSide, ProbeColumn]], before: Remaining | None, benefits: Benefits
) -> Remaining:
    """The part of a scan that the operands of an OR leave: containers with a key of one of them."""
    _, kept, _ = benefits.kept_by_any(operands)
    known = before or Remaining()
    return replace(known, rows=known.rows * kept, bytes=known.bytes * kept)


def _left(union: Sequence[RuntimeFilter], before: Remaining | None, benefits: Benefits) -> Remaining:
    """The part of a scan that united keys leave: the parts that the keys of each build leave add up."""
    first = union[0]
    if len(union) == 1:
        return benefits.effect(first.build_side, first.probe, before).left
    every = [benefits.effect(it.build_side, it.probe).left.columns[it.probe.column] for it in one_by_build(union)]
    rows, kept = (min(1.0, sum(parts)) for parts in zip(*every, strict=True))
    return (before or Remaining()).under(first.probe.column, rows, kept)
