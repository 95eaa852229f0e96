"""`KnownStatistics`: the statistics of a query's plan, from answers about metadata that are asked for when needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from pruning.cost.estimate import Estimate
from pruning.options import BroadcastStrategy, PruningOptions
from pruning.query.broadcasts import may_be_broadcast
from pruning.query.decoding import decoded_numbers
from pruning.query.exchange_reuse import ExchangeReuse, SharedExchange
from pruning.query.exchanges import unprunable_fraction
from pruning.query.join_condition import BuildSide
from pruning.query.key_origins import domain_from_statistics
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Join, Node, Relation, is_field
from pruning.query.plan_statistics import QueryFacts
from pruning.query.requests import (
    A,
    DescribeFiles,
    DescribeRowGroups,
    DescribeRows,
    EstimateBytes,
    Request,
    ScanContainers,
    Unanswered,
)
from pruning.reasons import UNREAD, Reason, ReasonCode
from pruning.scan.estimates import pass_ratio
from pruning.scan.statistics import UNKNOWN, why_missing
from pruning.values.byte_strings import IntArray
from pruning.values.domain import Domain
from pruning.values.encoding import sort_unique

# Eight for the flags of an `UnsafeRow`, and for each of its four numbers its place and its size.
_MEASURED_ROW_BYTES = 8 + 4 * (8 + 8)
# Files, the largest, whose footers stand for all, where statistics say nothing.
_SAMPLED_FILES = 2
# The factor by which the different values of a row group may be more than its dictionary tells.
_DISTINCT_ERROR = 4.0
# Writers give up a dictionary of a megabyte: that of a row group whose values nearly all differ has so many at least.
_LEAST_OF_MANY = 10_000.0


@dataclass(slots=True, eq=False)
class KnownStatistics:
    """The statistics of a query's plan, from the answers so far; raises `Unanswered` for an answer that is missing.

    Metadata that cannot be read counts as unknown; `problems` says why.
    """

    root: Node
    facts: QueryFacts
    options: PruningOptions
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _fractions: dict[tuple[int, int], float] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], float | None] = field(default_factory=dict)
    _values: dict[tuple[int, int], Estimate | None] = field(default_factory=dict)
    _rows: dict[int, int | None] = field(default_factory=dict)
    _together: dict[tuple[int, int], float] = field(default_factory=dict)
    _bytes: dict[int, int] = field(default_factory=dict)
    _reuse: ExchangeReuse | None = None

    @property
    def problems(self) -> tuple[Reason, ...]:
        """The reasons why some metadata could not be read so far."""
        failed = (each for each in self._answers.values() if isinstance(each, Reason))
        return tuple(dict.fromkeys(each for each in failed if each.code in UNREAD))

    def unprunable_fraction(self, probe: ProbeColumn) -> float:
        """The share, 0 to 1, of a probe column's bytes in containers that any key keeps; 1 without bounds.

        If the statistics of files skip nothing, row groups of some large files are used instead.
        """
        at = probe.relation.id, probe.column
        if at not in self._fractions:
            self._fractions[at] = self._unprunable_fraction(probe)
        return self._fractions[at]

    def _unprunable_fraction(self, probe: ProbeColumn) -> float:
        files = self._files(probe.relation, probe.column)
        if isinstance(files, Reason) or files.type is None:
            return 1.0
        share = self._fraction_of(files)
        if share < 1.0:
            return share
        groups = self._largest_row_groups(probe.relation, files, probe.column)
        return 1.0 if isinstance(groups, Reason) else self._fraction_of(groups)

    def missing_bounds(self, probe: ProbeColumn) -> ReasonCode | None:
        """The reason why no file, and no row group of some large ones, has bounds of a column; None where one has.

        Also None where they could not be read.
        """
        files = self._files(probe.relation, probe.column)
        if not _lacks_bounds(files):
            return None
        groups = self._largest_row_groups(probe.relation, files, probe.column)
        if not _lacks_bounds(groups):
            return None
        return why_missing(each.column for each in (files, groups) if each.column is not None)

    def _fraction_of(self, found: ScanContainers) -> float:
        if found.column is None:
            return 1.0
        return unprunable_fraction(found.column, found.containers.sizes)

    def is_broadcast(self, join: Join) -> bool:
        """True if a side that Spark may broadcast is small enough by Spark's estimate, before anything has run."""
        sides = (each for each in join.children if may_be_broadcast(join, each))
        return any(0 <= self._estimate(each) <= self.facts.broadcast_limit for each in sides)

    def is_broadcast_side(self, join: Join, side: Node) -> bool:
        """True if Spark would broadcast this side by its estimates: if it may broadcast both, the right one or less."""
        if not may_be_broadcast(join, side) or self._estimate(side) > self.facts.broadcast_limit:
            return False
        other = join.right if side is join.left else join.left
        if not may_be_broadcast(join, other):
            return True
        more = self._estimate(other) - self._estimate(side)
        return more > 0 or (more == 0 and side is join.right)

    def rows(self, relation: Relation) -> int:
        """Rows that a scan reads without filters; 0 if not known."""
        return self._row_count(relation) or 0

    def _row_count(self, relation: Relation) -> int | None:
        if relation.id not in self._rows:
            files = self._files(relation)
            self._rows[relation.id] = None if isinstance(files, Reason) else _row_sum(files)
        return self._rows[relation.id]

    def leaf_rows(self, leaf: Node) -> float:
        """The engine's estimate of the rows of a leaf that reads no files, such as cached rows; 0 if not known."""
        return self._estimate(leaf) / self._row_bytes(leaf)

    def _row_bytes(self, node: Node) -> int:
        """Bytes of an `UnsafeRow`, which has eight for each value, and more for long ones."""
        columns = sum(not is_field(each) for each in node.output)
        return 8 + 8 * columns + self._ask(DescribeRows(node), node.id).value_bytes

    def row_width(self, node: Node) -> float:
        """The bytes of a node's rows beside those of four numbers, by which rates are measured; at least 1."""
        return max(1.0, self._row_bytes(node) / _MEASURED_ROW_BYTES)

    def decoded_values(self, relation: Relation) -> float:
        """The numbers whose decoding takes as long as that of one row of the columns that a query uses of a scan."""
        top = zip(relation.output, relation.types, strict=False)
        used = [type_ for column, type_ in top if type_ and column in self.facts.used]
        return float(sum(map(decoded_numbers, (*used, *(each.type for each in relation.fields)))))

    def files(self, relation: Relation) -> int:
        """Files of a scan's table; 0 if not known."""
        files = self._files(relation)
        return 0 if isinstance(files, Reason) else len(files.containers)

    def domain_size(self, relation: Relation, column: int) -> float | None:
        """The different values of a column: the most by its bounds, else by its row groups; None if unknown."""
        count, rows = self.numbers_between(relation, column), self._row_count(relation)
        if rows is None:
            return count
        if count is None:
            told = self._told(relation, column)
            return None if told is None else told.expected
        return float(min(count, rows))

    def least_values(self, relation: Relation, column: int) -> float | None:
        """The least different values of a column that row groups tell; None where bounds or nothing tell of them."""
        told = self._told(relation, column) if self.numbers_between(relation, column) is None else None
        return None if told is None else told.low

    def _told(self, relation: Relation, column: int) -> Estimate | None:
        """The different values that dictionaries of row groups tell; None if they tell nothing."""
        at = relation.id, column
        if at not in self._values:
            self._values[at] = self._values_by_row_groups(relation, column)
        return self._values[at]

    def _values_by_row_groups(self, relation: Relation, column: int) -> Estimate | None:
        """The values by those in some large row groups, and by the share of containers that hold one value."""
        files, rows = self._files(relation, column), self._row_count(relation)
        if isinstance(files, Reason) or files.type is None or not rows:
            return None
        if files.column is not None and files.column.is_partition:
            lows = sort_unique(files.column.lows.take(np.flatnonzero(files.column.has_low)))
            return Estimate.exact(float(max(1, len(lows))))
        groups = self._largest_row_groups(relation, files, column)
        told = _distinct_of(groups)
        if isinstance(groups, Reason) or told is None:
            return None
        known = told != UNKNOWN
        distinct, counted = told[known].astype(float), groups.containers.rows[known]
        if not counted.sum():
            return None
        if distinct.sum() * _DISTINCT_ERROR >= counted.sum():
            # Each row may have another value, or a value stands in several of them.
            least = min(float(distinct.mean()), _LEAST_OF_MANY)
            return Estimate(least, float(rows), float(rows))
        # The share of the sampled row groups, of all files, and of the row groups of a file, that hold one value.
        sampled = min(_SAMPLED_FILES, len(files.containers))
        in_groups = max(self._fraction_of(groups), 1 / len(groups.containers))
        in_files = max(self.unprunable_fraction(ProbeColumn(relation, column)), 1 / len(files.containers))
        in_file = min(1.0, in_groups * sampled)
        least = float(distinct.mean())
        return Estimate.around(least, min(least / in_file / in_files, float(rows)), float(rows))

    def numbers_between(self, relation: Relation, column: int) -> float | None:
        """The numbers between the bounds of a column's files; None if not known."""
        at = relation.id, column
        if at not in self._numbers:
            self._numbers[at] = self._count_between(relation, column)
        return self._numbers[at]

    def may_have_nulls(self, relation: Relation, column: int) -> bool:
        """False where statistics of all files, or of all row groups, prove that a column has no NULL."""
        files = None if is_field(column) else self._files(relation, column)
        # Writers differ in whether a NULL struct counts for its fields.
        if files is None or isinstance(files, Reason) or not files.containers.is_listed:
            return True
        if _has_nulls(files):
            return True
        if not _may_have_nulls(files):
            return False
        every = np.arange(len(files.containers))
        if len(every) > self.options.limits.max_footers:
            return True
        groups = self._ask(DescribeRowGroups(relation, every, column), relation.id, column, "nulls")
        return isinstance(groups, Reason) or _may_have_nulls(groups)

    def is_sparse(self, relation: Relation, column: int) -> bool:
        """True where each row may have another value, or where values repeat, and nothing tells how often.

        Every number of a dense key may be there, so it has no more numbers than rows, or few more.
        """
        count, rows = self.numbers_between(relation, column), self.rows(relation)
        if count is None:
            told = self._told(relation, column)
            return told is not None and told.expected >= rows * self.options.limits.unique_share
        return rows > 0 and rows < count * self.options.limits.unique_share

    def _count_between(self, relation: Relation, column: int) -> float | None:
        files = self._typed_files(relation, column)
        if files is None or files.type is None:
            return None
        has_rows = files.containers.rows != 0
        values = domain_from_statistics(files.containers, files.name, has_rows, files.type).ranges
        count = None if values.is_all else values.point_count()
        return None if count is None else float(count)

    def rows_together(self, relation: Relation, column: int) -> float:
        """The rows with one value of a column that stand together, as those of an order do; 1 if not known.

        It is told from the different values in some large row groups, where these are few of all values. Rows that were
        mixed at random would have more of them.
        """
        at = relation.id, column
        if at not in self._together:
            self._together[at] = self._rows_together(relation, column)
        return self._together[at]

    def _rows_together(self, relation: Relation, column: int) -> float:
        values, files = self.domain_size(relation, column), self._typed_files(relation, column)
        if not values or files is None:
            return 1.0
        groups = self._largest_row_groups(relation, files, column)
        distinct = _distinct_of(groups)
        if isinstance(groups, Reason) or distinct is None:
            return 1.0
        known = (distinct != UNKNOWN) & (distinct <= values / 2)
        if not known.all() or not len(groups.containers):
            return 1.0
        drawn = -np.log1p(-distinct / values) * values
        return max(1.0, float(groups.containers.rows.sum() / drawn.sum()))

    def matching_share(self, relation: Relation, column: int, domain: Domain) -> float | None:
        """The share, 0 to 1, of a table's rows whose value lies in `domain`, if values are spread evenly."""
        files = self._typed_files(relation, column)
        if files is None or files.column is None or files.type != domain.type:
            return None
        containers, known = files.containers, files.column.has_low & files.column.has_high
        if not known.any():
            return None
        return pass_ratio(files.column, containers.rows, known, domain)

    def _typed_files(self, relation: Relation, column: int) -> ScanContainers | None:
        """The files of a scan, if the values of a column can be counted between two bounds."""
        if not _has_density(ProbeColumn(relation, column)):
            return None
        files = self._files(relation, column)
        if isinstance(files, Reason) or files.type is None or not files.type.has_density:
            return None
        return files

    def needed_share(self, relation: Relation) -> float:
        """The share, 0 to 1, of the bytes of a scan's files in columns that the query uses, from some large files."""
        files = self._files(relation)
        if isinstance(files, Reason):
            return 1.0
        groups = self._largest_row_groups(relation, files)
        if isinstance(groups, Reason):
            return 1.0
        sizes = files.containers.sizes
        whole, part = int(sizes[self._largest(files)].sum()), int(groups.containers.sizes.sum())
        # If the files of a table identify columns only by id, no column is found by name.
        return part / whole if whole and part else 1.0

    def are_few(self, node: Node, rows: float) -> bool:
        """True where `rows` rows of a node are few enough to be joined as a local relation."""
        if self.options.broadcast_strategy == BroadcastStrategy.NONE.name:
            return False
        limits, shape = self.options.limits, self._ask(DescribeRows(node), node.id)
        most = limits.joined_long_rows if shape.has_long_values else limits.joined_rows
        # With a negative limit nothing is broadcast, and rows are joined otherwise.
        return rows <= most and not 0 <= self.facts.broadcast_limit < rows * self._row_bytes(node)

    def shared_exchanges(self, build_side: BuildSide, probe: ProbeColumn) -> Sequence[SharedExchange]:
        """The exchanges that the engine would run for one place alone after a filter of the probe column."""
        return self._exchange_reuse().changed(build_side, probe)

    def shared_shuffles(self) -> Sequence[Sequence[tuple[Join, Node]]]:
        """The joins whose equal sides the engine shuffles once for all of them, with these sides."""
        if not self.facts.equal:
            return ()
        shared = self._exchange_reuse().sides()
        return [[each for each in joins if not self.is_broadcast(each[0])] for joins in shared]

    def _exchange_reuse(self) -> ExchangeReuse:
        if self._reuse is None:
            self._reuse = ExchangeReuse.of(self.root, self.facts.equal, self._is_sent_to)
        return self._reuse

    def _is_sent_to(self, join: Join, side: Node) -> bool:
        return not self.is_broadcast(join) or self.is_broadcast_side(join, side)

    # Answers.

    def _files(self, relation: Relation, column: int | None = None) -> ScanContainers | Reason:
        return self._ask(DescribeFiles(relation, column), relation.id, column)

    def _largest_row_groups(
        self, relation: Relation, files: ScanContainers, column: int | None = None
    ) -> ScanContainers | Reason:
        return self._ask(DescribeRowGroups(relation, self._largest(files), column), relation.id, column)

    def _largest(self, files: ScanContainers) -> IntArray:
        return np.argsort(-files.containers.sizes)[:_SAMPLED_FILES]

    def _estimate(self, node: Node) -> int:
        if node.id not in self._bytes:
            # All at once: with one request for each, the plan would be walked as often as it has joins.
            self._estimated((node, *_joined(self.root)))
        return self._bytes[node.id]

    def _estimated(self, nodes: Sequence[Node]) -> None:
        missing = tuple(each for each in nodes if each.id not in self._bytes)
        if missing:
            ids = [each.id for each in missing]
            raise Unanswered(EstimateBytes(missing), lambda sizes: self._bytes.update(zip(ids, sizes, strict=True)))

    def _ask(self, request: Request[A], *subject: Hashable) -> A:
        key = (type(request), *subject)
        if key not in self._answers:
            raise Unanswered(request, partial(self._answers.__setitem__, key))
        answer: A = self._answers[key]
        return answer


def _distinct_of(groups: ScanContainers | Reason) -> IntArray | None:
    """The different values that each row group tells of its column; None if none was read or none tells."""
    return None if isinstance(groups, Reason) or groups.column is None else groups.column.distinct


def _lacks_bounds(found: ScanContainers | Reason) -> TypeGuard[ScanContainers]:
    """True for containers whose statistics of a column were read, and have no bound."""
    return not isinstance(found, Reason) and found.column is not None and not found.column.has_bounds


def _may_have_nulls(found: ScanContainers) -> bool:
    if found.column is None:
        return True
    return bool(((found.column.null_count != 0) & (found.containers.rows != 0)).any())


def _has_nulls(found: ScanContainers) -> bool:
    """True if a container is known to have a NULL."""
    return found.column is not None and bool((found.column.null_count > 0).any())


def _row_sum(files: ScanContainers) -> int | None:
    rows = files.containers.rows
    return None if (rows == UNKNOWN).any() else int(rows.sum())


def _has_density(probe: ProbeColumn) -> bool:
    """True for types of the plan whose values can be counted between two bounds."""
    return probe.type is not None and probe.type.has_density


def _joined(root: Node) -> Iterator[Node]:
    """Both sides of each join."""
    for node in root.walk():
        if isinstance(node, Join):
            yield from node.children
