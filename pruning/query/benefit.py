"""`Benefits`: the seconds that a build costs and that its keys save, and what they leave of each scan.

Saved: bytes that are not read and decoded, and rows that do not pass the operators between a scan and the join that
drops them. Paid: the build, less what the query does not do again because it joins the rows of the build; and the row
filter. The bounds follow from those of the share of rows that pass, and from how keys lie among the values of a column:
next to each other, which skips most containers, or anywhere, which skips fewest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pruning.cost.estimate import Estimate
from pruning.cost.rates import NANOSECONDS, CostRates
from pruning.limits import Limits
from pruning.query.cardinality import Cardinalities
from pruning.query.exchanges import between
from pruning.query.join_condition import BuildSide
from pruning.query.lineage import ProbeColumn
from pruning.query.plan import Filter, GlobalAggregate, Grouping, Limit, Node, Passthrough, Project, Relation
from pruning.query.plan_cost import PlanCost
from pruning.query.plan_statistics import QueryFacts, Sizes
from pruning.scan.key_filter import RowWorth

# Nanoseconds of a row up to its join, and those of its test by keys; None where rows are not tested.
_Work: TypeAlias = tuple[float, float | None]

# Leaves whose rows the driver has, or counts, by itself.
_IN_MEMORY = frozenset({"LocalRelation", "Range"})


@dataclass(frozen=True, slots=True)
class Benefit:
    """Seconds that a filter, or several by one build, costs and saves.

    `run` are those of the build itself, and `scans` those of them in which it reads.

    >>> print(Benefit(Estimate.exact(0.12), Estimate(0.9, 1.8, 2.4)))
    costs 0.12 s, saves 1.8 s (0.9 to 2.4)
    """

    paid: Estimate
    saved: Estimate
    run: float = 0.0
    scans: float = 0.0

    @property
    def mostly_reads(self) -> bool:
        """True where the build is expected to spend most of its seconds on scans."""
        return 2 * self.scans > self.run

    @property
    def gain(self) -> float:
        """Seconds that are expected to be saved beyond the cost."""
        return self.saved.expected - self.paid.expected

    @property
    def risk(self) -> float:
        """Seconds that are lost if the build costs most and its keys save least."""
        return self.paid.high - self.saved.low

    def __str__(self) -> str:
        return f"costs {self.paid}, saves {self.saved}"


@dataclass(frozen=True, slots=True)
class Remaining:
    """The shares of a scan's rows and bytes that filters leave, 0 to 1; by column those of the keys of that column."""

    rows: float = 1.0
    bytes: float = 1.0
    columns: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def shares_under(self, column: int, rows: float, kept: float) -> tuple[float, float]:
        """The shares of rows and bytes under keys of one more column, as `under` gives them."""
        known_rows, known_bytes = self.columns.get(column, (1.0, 1.0))
        new_rows, new_bytes = self._of_column(column, rows, kept)
        return self.rows * _ratio(new_rows, known_rows), self.bytes * _ratio(new_bytes, known_bytes)

    def under(self, column: int, rows: float, kept: float) -> Remaining:
        """The shares under keys of one more column that let `rows` pass and keep containers of `kept` of the bytes.

        Keys of one column are taken to lie within each other, those of different columns to be independent.
        """
        columns = {**self.columns, column: self._of_column(column, rows, kept)}
        return Remaining(*self.shares_under(column, rows, kept), columns)

    def _of_column(self, column: int, rows: float, kept: float) -> tuple[float, float]:
        known_rows, known_bytes = self.columns.get(column, (1.0, 1.0))
        return min(known_rows, rows), min(known_bytes, kept)


def _ratio(new: float, known: float) -> float:
    return new / known if known else 1.0


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of the keys of one build on one scan: the seconds saved, and what they leave of the scan."""

    saved: Estimate
    left: Remaining


@dataclass(frozen=True, slots=True)
class _Keys:
    """Shares of a scan: of rows that pass, and of bytes in containers kept for `near` keys and for `scattered` ones."""

    passing: Estimate
    near: Estimate
    scattered: Estimate


@dataclass(slots=True)
class Benefits:
    """The cost model of filters at one moment; `seconds_before` are those of an earlier query of the shape, or 0."""

    sizes: Sizes
    limits: Limits
    runs_on_driver: bool = False
    tests_rows: bool = True
    seconds_before: float = 0.0
    cardinalities: Cardinalities = field(init=False)
    cost: PlanCost = field(init=False)
    _keys: dict[tuple[int, str, int, int], _Keys] = field(default_factory=dict)
    _paid: dict[tuple[int, int], Estimate] = field(default_factory=dict)
    _effects: dict[tuple[int, str, int, int, int], Effect] = field(default_factory=dict)
    _surely: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cardinalities = Cardinalities(self.sizes, self.limits)
        self.cost = PlanCost(self.sizes, self.rates, self.cardinalities)

    @staticmethod
    def of(sizes: Sizes, limits: Limits, facts: QueryFacts | None = None) -> Benefits:
        """The model for the sizes of one moment."""
        if facts is None:
            return Benefits(sizes, limits)
        seconds_before = 0.0 if facts.lesson is None else facts.lesson.seconds
        return Benefits(sizes, limits, facts.runs_on_driver, facts.tests_rows, seconds_before)

    @property
    def rates(self) -> CostRates:
        """The rates of the machine."""
        return self.limits.costs

    # The cost of a build.

    def paid(self, node: Node, keys: int = 1) -> Estimate:
        """Seconds for a build of `node` that gives so many keys, less those spared by joining its rows."""
        at = node.id, keys
        if at not in self._paid:
            run, spared = self.run(node, keys), self.cost.tree(node)
            expected = run - spared if self.fits(node) else run
            most = run * self.limits.cost_error - (spared if self._surely_fits(node) else 0.0)
            self._paid[at] = Estimate.around(run - spared, expected, most)
        return self._paid[at]

    def run(self, node: Node, keys: int = 1) -> float:
        """Seconds for a build of `node` by itself; the values of each key are summarised on their own."""
        return self._latency(node) + keys * self.key(node) + self.cost.tree(node)

    def key(self, node: Node) -> float:
        """Seconds for one key of a build's rows; those that the driver reads by itself come from no other process."""
        row = self.rates.driver_row if self.is_on_driver(node) else self.rates.kept_row
        return self.cardinalities.rows(node) * row / NANOSECONDS

    def scans(self, node: Node) -> float:
        """Seconds of the scans of a build."""
        materialized = self.sizes.materialized
        return sum(
            self.cost.scan(each) for each in node.walk() if isinstance(each, Relation) and each.id not in materialized
        )

    def fits(self, node: Node) -> bool:
        """True where the rows of a build are expected to be few enough to be joined as a local relation."""
        return self.sizes.statistics.are_few(node, self.cardinalities.rows(node))

    def may_fit(self, node: Node) -> bool:
        """True where the rows of a build may be few enough to be joined, so that the driver should ask for them."""
        kept = self.cardinalities.kept_share(node)
        least = self.cardinalities.rows(node) * (kept.low / kept.expected if kept.expected else 1.0)
        return self.sizes.statistics.are_few(node, least)

    def _surely_fits(self, node: Node) -> bool:
        """True where not even all rows of the table below a build are too many to be joined as a local relation."""
        below = _filtered(node)
        rows = self.sizes.statistics.rows(below) if isinstance(below, Relation) else 0
        return rows > 0 and self.sizes.statistics.are_few(node, rows)

    def is_on_driver(self, node: Node) -> bool:
        """True where the driver is expected to answer a build by itself, without a job."""
        if not self.runs_on_driver:
            return False
        below, limits = _aggregated(node), self.limits
        return (
            min(limits.driver_scan_files, limits.driver_scan_seconds) > 0
            and self.cardinalities.rows(node) <= limits.joined_rows
            and (self._is_small(below) if isinstance(below, Relation) else below.kind in _IN_MEMORY)
        )

    def _is_small(self, relation: Relation) -> bool:
        """True where the files of a scan are few and small enough for the driver to read them."""
        limits = self.limits
        return (
            self.cost.files(relation) <= limits.driver_scan_files
            and self.cost.file_bytes(relation) <= limits.driver_scan_bytes
            and self.cardinalities.table_rows(relation) <= limits.driver_scan_rows
        )

    def _latency(self, node: Node) -> float:
        if node.id in self.sizes.materialized:
            return 0.0
        if self.is_on_driver(node):
            return self.rates.driver_build / NANOSECONDS
        inner = sum(_is_stage(each) for each in node.walk() if each.id not in self.sizes.materialized)
        return self.rates.build_job * (1 + self.limits.inner_job_share * inner) / NANOSECONDS

    def query(self, root: Node) -> float:
        """Seconds that a query is expected to take at this moment."""
        return self.rates.query / NANOSECONDS + self.cost.tree(root)

    def risked(self, root: Node) -> float:
        """Seconds that a filter of a query may lose: `risked_seconds`, or a share of what the query surely takes."""
        return max(self.limits.risked_seconds, self.limits.risked_share * self.surely(root))

    def surely(self, root: Node) -> float:
        """Seconds that a query surely takes, of which filters can save no more: by the model, or as it took before."""
        if root.id not in self._surely:
            by_model = self.rates.query / NANOSECONDS + self.cost.bounded(root)
            self._surely[root.id] = max(by_model, self.seconds_before)
        return self._surely[root.id]

    def is_bearable(self, risk: float, gain: float, root: Node) -> bool:
        """True where a loss of so many seconds is little beside a gain, which is no more than what the query takes."""
        return risk <= self.limits.risked_gain * min(gain, self.surely(root))

    # The seconds that keys save.

    @property
    def planning(self) -> float:
        """Seconds for planning a scan with further keys, footers included."""
        return self.rates.planned_scan / NANOSECONDS

    def effect(self, build_side: BuildSide, probe: ProbeColumn, before: Remaining | None = None) -> Effect:
        """The effect of the keys of a build side on a scan of which other filters leave the part `before`."""
        if before is not None:
            return self._effect(build_side, probe, before, self._keys_of(build_side, probe))
        at = (*build_side.id, build_side.join.id, probe.relation.id, probe.column)
        if at not in self._effects:
            present, keys = self._at_present(probe.relation), self._keys_of(build_side, probe)
            self._effects[at] = self._effect(build_side, probe, present, keys)
        return self._effects[at]

    def passing(self, build_side: BuildSide, probe: ProbeColumn) -> float:
        """The share of a scan's rows that is expected to have a key."""
        return self._keys_of(build_side, probe).passing.expected

    def saved_by_share(
        self, build_side: BuildSide, probe: ProbeColumn, share: float, before: Remaining | None = None
    ) -> float:
        """Seconds that a share of the keys of a build side is expected to save, as `effect` has those of all keys."""
        passing = self._keys_of(build_side, probe).passing
        shares = (each * share for each in (passing.low, passing.expected, passing.high))
        fewer = self._kept_by(probe, Estimate(*shares))
        return self._effect(build_side, probe, before or self._at_present(probe.relation), fewer).saved.expected

    def _effect(self, build_side: BuildSide, probe: ProbeColumn, before: Remaining, keys: _Keys) -> Effect:
        way = self.cost.way(build_side.join, probe.relation)
        work = way, self._test(build_side, probe) if self._tests_rows(build_side, probe) else None
        least = self._saved(probe, before, keys.passing.high, keys.scattered.high, work)
        most = self._saved(probe, before, keys.passing.low, keys.near.low, work)
        near = self._saved(probe, before, keys.passing.expected, keys.near.expected, work)
        scattered = self._saved(probe, before, keys.passing.expected, keys.scattered.expected, work)
        kept = (keys.near.expected + keys.scattered.expected) / 2
        left = before.under(probe.column, _read(keys.passing.expected, kept, work), kept)
        return Effect(Estimate.around(max(0.0, least), max(0.0, (near + scattered) / 2), max(0.0, most)), left)

    def saved_by_any(self, operands: Sequence[tuple[BuildSide, ProbeColumn]]) -> Estimate:
        """Seconds that skipped containers save if a row of a scan has to have a key of one of several columns."""
        (build_side, probe), kept = operands[0], self.kept_by_any(operands)
        work = self.cost.way(build_side.join, probe.relation), None
        low, expected, high = (self._saved(probe, Remaining(), share, share, work) for share in kept)
        return Estimate.around(max(0.0, high), max(0.0, expected), max(0.0, low))

    def kept_by_any(self, operands: Sequence[tuple[BuildSide, ProbeColumn]]) -> tuple[float, float, float]:
        """The least, the expected and the greatest share of bytes in containers that keys of one operand keep."""
        found = [self._keys_of(build_side, probe) for build_side, probe in operands]
        expected = sum(each.near.expected + each.scattered.expected for each in found) / 2
        shares = sum(each.near.low for each in found), expected, sum(each.scattered.high for each in found)
        low, middle, high = (min(1.0, each) for each in shares)
        return low, middle, high

    def _at_present(self, relation: Relation) -> Remaining:
        """The whole of a scan as it is now, with the shares of values to which keys have restricted its columns."""
        found: dict[int, tuple[float, float]] = {}
        for column, keys in self.sizes.applied.get(relation.id, {}).items():
            probe = ProbeColumn(relation, column)
            values = self.cardinalities.values(relation, column)
            share = min(1.0, keys / values) if values else 1.0
            kept = min(1.0, share + self.sizes.statistics.unprunable_fraction(probe))
            found[column] = share if self.tests_rows else kept, kept
        return Remaining(columns=found)

    def row_worth(self, build_side: BuildSide, probe: ProbeColumn) -> RowWorth:
        """The worth of testing the rows of a scan by the keys of a build side."""
        passing = self.cardinalities.most_passing(build_side, probe)
        return RowWorth(passing, self.cost.way(build_side.join, probe.relation))

    def _keys_of(self, build_side: BuildSide, probe: ProbeColumn) -> _Keys:
        at = (*build_side.id, probe.relation.id, probe.column)
        if at not in self._keys:
            self._keys[at] = self._kept_by(probe, self._passing(build_side, probe))
        return self._keys[at]

    def _kept_by(self, probe: ProbeColumn, passing: Estimate) -> _Keys:
        whole = self.sizes.statistics.unprunable_fraction(probe)
        values = self.cardinalities.key_values(probe) or self.cardinalities.table_rows(probe.relation)
        shares = passing.low, passing.expected, passing.high
        near = Estimate(*(min(1.0, whole + each) for each in shares))
        kept = zip((near.low, near.expected, near.high), shares, strict=True)
        scattered = Estimate(*(max(own, _scattered(whole, each * values)) for own, each in kept))
        return _Keys(passing, near, scattered)

    def _passing(self, build_side: BuildSide, probe: ProbeColumn) -> Estimate:
        """The share of a scan's rows that have a key.

        Keys that are filtered already may be filtered by the very conditions of the scan, as those of a fact are by a
        dimension: such keys drop none of the rows that fulfil these conditions.
        """
        share = self.cardinalities.partner_share(build_side, probe)
        origins = self.cardinalities.origins(build_side.node, build_side.key)
        if not any(each.column in self.sizes.applied.get(each.relation.id, {}) for each in origins):
            return share
        _, child = next(between(build_side.join, probe.relation.id))
        rows = self.cardinalities.rows(probe.relation)
        reaching = min(1.0, self.cardinalities.rows(child) / rows) if rows else 1.0
        shares = (min(1.0, each / reaching) if reaching else 1.0 for each in (share.low, share.expected, share.high))
        return Estimate(*shares)

    def _test(self, build_side: BuildSide, probe: ProbeColumn) -> float:
        """Nanoseconds of a core for the test of a row: by literals if keys are few, by a bitmap if values are."""
        is_list = self.cardinalities.rows(build_side.node) <= self.limits.max_in_list
        if is_list or probe.functions or build_side.condition.bound is not None or build_side.condition.is_scalar:
            return self.rates.spark_compared
        values = self.sizes.statistics.domain_size(probe.relation, probe.column)
        is_narrow = values is not None and values <= 8 * self.limits.bitmap_filter_bytes
        has_bitmap = is_narrow and probe.type is not None and probe.type.has_bitmap
        return self.rates.spark_lookup if has_bitmap else self.rates.spark_test

    def _tests_rows(self, build_side: BuildSide, probe: ProbeColumn) -> bool:
        """True where rows of containers that are read may be tested by the keys of a build side.

        Keys that are ranges alone test them only as a predicate, which storage is given where it skips containers.
        """
        return self.tests_rows and (
            not are_ranges(build_side, probe) or self.sizes.statistics.unprunable_fraction(probe) < 1
        )

    def _saved(self, probe: ProbeColumn, before: Remaining, passing: float, kept: float, work: _Work) -> float:
        """Seconds saved if a share of rows is `passing` and containers of a share `kept` of the bytes are read."""
        (way, test), relation = work, probe.relation
        after_rows, after_bytes = before.shares_under(probe.column, _read(passing, kept, work), kept)
        read = self.cost.needed_bytes(relation) * (before.bytes - after_bytes)
        rows = self.cardinalities.rows(relation)
        reading = before.rows * _ratio(after_bytes, before.bytes)
        by_skipping = rows * (before.rows - reading) * way
        by_test = 0.0 if test is None else rows * ((before.rows - after_rows) * way - reading * test)
        return self.cost.seconds(read * self.cost.per_byte(relation), relation) + self.cost.seconds(
            max(by_skipping, by_test)
        )


def are_ranges(build_side: BuildSide, probe: ProbeColumn) -> bool:
    """True for keys under functions of a column, and for those of a comparison: no list of values tests a row."""
    return bool(probe.functions) or build_side.condition.bound is not None


def _read(passing: float, kept: float, work: _Work) -> float:
    """The share of rows that a scan gives, of which a share is `passing`, and a share `kept` is in what is read."""
    _, test = work
    return kept if test is None else passing


def _filtered(node: Node) -> Node:
    """The node of which projections and conditions without subqueries make another one."""
    while isinstance(node, (Filter, Project)) and not node.subqueries:
        node = node.children[0]
    return node


def _is_stage(node: Node) -> bool:
    """True for an operator that waits for all rows below it, which come from several tasks."""
    if not node.children or isinstance(node, (Filter, Project, Passthrough)) or node.kind == "LocalLimit":
        return False
    below = _filtered(node.children[0])
    comes_from_one = isinstance(below, GlobalAggregate) or (isinstance(below, Limit) and below.kind == "GlobalLimit")
    return len(node.children) > 1 or not comes_from_one


def _aggregated(node: Node) -> Node:
    """The node of which projections, conditions and aggregates without subqueries make another one."""
    below = _filtered(node)
    while isinstance(below, Grouping) and below.kind == "Aggregate" and not below.subqueries:
        below = _filtered(below.children[0])
    return below


def _scattered(whole: float, keys: float) -> float:
    """The share of containers that hold one of `keys` keys anywhere, if one key is in the share `whole` of them."""
    if whole >= 1.0:
        return 1.0
    return 1.0 - (1.0 - whole) ** keys if keys < 1e9 else 1.0
