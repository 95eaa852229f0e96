"""`Limits`: the numbers of decisions that can be set, each with its unit, its reason, and the value that turns it off.

Those of `ExecutionLimits`, which say how the work is done, are a part of the same table.

Other numbers are constants beside their code: those of a format, of Spark's own defaults or of the machine, those of
the work that nobody has a reason to set, and those of decisions without which no plan of a workload changes. The
constructors of caches that outlive a call set their sizes, since calls with other limits share them.

Measurements are of TPC-DS at scale 10 on two cores where no other is named. `benchmarks/results/ablation-*.md` have the
plans that change without each number of a decision; an ablation by `Limits().without(name)` repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from pruning.cost.rates import CostRates
from pruning.errors import InvalidOptionError
from pruning.execution_limits import ExecutionLimits
from pruning.settings import UNBOUNDED, check_all, limit, parsed, set_texts, table


@dataclass(frozen=True, slots=True)
class Limits(ExecutionLimits):
    """The table of limits. Field metadata: `unit`, `why`, `off` (the value that turns the rule off), `least`, `most`.

    >>> Limits().without("list_span").list_span
    2.0
    """

    # Key sets.
    max_build_keys: int = limit(
        10_000_000,
        "keys",
        "an exact key set beyond it becomes min-max and a bloom; 10 million bigints are 80 MB, 0.5 s",
        1_000_000_000,
        1,
        1_000_000_000,
    )
    bloom_fpp: float = limit(
        0.01,
        "probability",
        "blooms are sized for it: 10.5 bits a key, half as many for 0.1",
        0.5,
        0.000_001,
        0.5,
    )
    bloom_room: int = limit(
        4,
        "ratio",
        "a bloom keeps its rate up to 4 times `max_build_keys`; a build larger still is seldom worth one",
        1,
        1,
    )

    # Builds of a query.
    all_builds_timeout_seconds: float = limit(
        300.0, "seconds", "all builds of one prune() end by then, whatever each may take", 86_400.0, 0.001, 86_400.0
    )

    # The cost model: what a filter may cost, and the shares of rows where statistics say little.
    risked_seconds: float = limit(
        0.1,
        "seconds",
        "a filter that saves nothing may cost so much: the noise of a query's seconds",
        86_400.0,
        0.0,
        86_400.0,
    )
    risked_share: float = limit(
        0.05, "share", "or so much of the seconds that the query is expected to take", 1e9, 0.0, 1e9
    )
    risked_gain: float = limit(
        0.5, "share", "or so much of the seconds that it is expected to gain: such a bet is won in the long run", 0, 0
    )
    share_error: float = limit(
        3.0, "ratio", "a share of rows by the bounds of columns may be wrong by it: values cluster", 1.0, 1.0
    )
    values_error: float = limit(
        1.5, "ratio", "the different values among rows may be wrong by it: equal values stand together", 1.0, 1.0
    )
    guess_error: float = limit(10.0, "ratio", "a share by the kind of condition alone may be wrong by it", 1.0, 1.0)
    equal_share: float = limit(
        0.1, "share", "rows equal to a value, where bounds say nothing: the guess of System R", 1.0, 0.0, 1.0
    )
    other_share: float = limit(
        0.33, "share", "rows that fulfil any other condition: the guess of System R", 1.0, 0.0, 1.0
    )
    bound_share: float = limit(
        0.5, "share", "rows that pass a comparison with one end, such as a subquery's least value", 1.0, 0.0, 1.0
    )
    inner_job_share: float = limit(
        1.0,
        "share",
        "each join, aggregate, limit or window inside of a build takes so much of its job's latency",
        0.0,
        0.0,
        1.0,
    )
    task_bytes: int = limit(4 << 20, "bytes", "a scan of so few is one task: Spark's cost of opening a file", 0)
    requests_per_file: int = limit(
        3, "requests", "a file of a store is read by some: its footer, and the chunks of its row groups", 0
    )
    unique_share: float = limit(
        0.9, "share", "a column with a value for so many of its table's rows is taken to be a key", 2.0, 0.0, 2.0
    )
    cost_error: float = limit(
        1.5, "ratio", "a build may take so many times its expected seconds: tasks wait, files are cold", 1.0, 1.0
    )

    # Builds whose rows are joined as a local relation.
    joined_rows: int = limit(
        100_000,
        "rows",
        "the driver's JVM holds the rows of a build, if each partition has no more",
        0,
        0,
        (1 << 31) - 1,
    )
    joined_long_rows: int = limit(
        10_000,
        "rows",
        "the same for rows with texts, binaries or nested values, which take more bytes",
        0,
        0,
        (1 << 31) - 1,
    )

    # One scan.
    max_footers: int = limit(
        1000,
        "files",
        "footers that one read may open: 1,000 of 96 column chunks take 1.9 s and 20 MB",
        10_000_000,
        0,
        10_000_000,
    )
    max_listed_files: int = limit(
        100_000,
        "files",
        "a log entry takes some 2 KB in the JVM; more of them are listed by the format, for each scan",
        0,
    )
    max_ranges: int = limit(
        64,
        "ranges",
        "ranges of a scan's predicate; 1 to 7 skip all that keys can, in ten selective queries",
        1000,
        1,
        1000,
    )
    tuple_ranges: int = limit(
        8,
        "ranges",
        "ranges of two columns: 3.4 of 10.4 MB, Parquet in order of shop and order, 8 pairs",
        1,
        1,
    )
    page_span: float = limit(
        0.25,
        "share",
        "row groups that each span more of all values are not sorted, so their pages skip nothing",
        -1.0,
        -1.0,
    )
    page_share: float = limit(
        1 / 512, "share", "a gap for fewer of a scan's bytes makes each row's test longer for next to nothing", 0.0
    )
    page_comparisons: int = limit(
        1 << 20, "pairs", "gaps times row groups compared for pages; of more keys hardly a gap is as wide", 0
    )

    # Rows of kept containers.
    max_in_list: int = limit(
        500,
        "keys",
        "an IN list is exact, and storage sees few of its keys or their span; longer ones cost more than they skip",
        10_000,
        0,
        10_000,
    )
    bitmap_filter_bytes: int = limit(
        1 << 20, "bytes", "a bitmap tests a row in 9 ns, a bloom filter in 18 to 28; each task gets a copy", 0
    )
    list_span: float = limit(
        0.9,
        "share",
        "a long list with such a span is hidden from storage: a third more bytes of store_sales by item",
        2.0,
    )
    few_matches: int = limit(
        20, "rows", "with fewer matches a row group, a predicate skips some whatever it opens", UNBOUNDED
    )
    looked_at_share: float = limit(
        0.02, "share", "dictionaries and page indexes that a predicate opens, of the bytes to read", 1e9
    )
    method_bytes: int = limit(
        5_500, "bytes", "of 8,000 that the JVM compiles; 3 M rows took 8.5 s interpreted and 0.8 s compiled", UNBOUNDED
    )

    # Rates.
    costs: CostRates = table(  # noqa: RUF009 - a field
        CostRates(),
        "rates as `scanprune calibrate` prints them, such as 'byte=1,build_job=3e7'",
        unit="nanoseconds",
        why="fitted to stock Spark's seconds of 99 queries on one machine; `scanprune calibrate` measures another",
        off=CostRates(),
    )
    most_correction: float = limit(
        4.0, "ratio", "a session makes the rates of a store so many times larger or smaller", 1.0, 1.0, 1000.0
    )
    least_observations: int = limit(
        3,
        "observations",
        "fewer seconds of builds that read from a store may be those of the first, cold one",
        UNBOUNDED,
        1,
    )
    correction_weight: float = limit(
        0.25,
        "share",
        "the latest seconds count for a quarter, so that ten follow a store that became busy",
        0.0,
        0.0,
        1.0,
    )

    def __post_init__(self) -> None:
        set_texts(self)
        check_all(self)

    def without(self, *names: str) -> Limits:
        """These limits with the rules of `names` off, as an ablation needs it."""
        known = {each.name: each for each in fields(self)}
        if unknown := sorted(set(names) - set(known)):
            msg = f"Cannot turn off {', '.join(map(repr, unknown))}: expected some of {', '.join(known)}"
            raise InvalidOptionError(msg)
        return replace(self, **{name: known[name].metadata["off"] for name in names})

    def with_texts(self, texts: Mapping[str, tuple[str, str]]) -> Limits:
        """These limits with some parsed from text; by field, the name that the caller used and the text."""
        known = {each.name: each for each in fields(self)}
        return replace(self, **{name: parsed(known[name], text, said) for name, (said, text) in texts.items()})


LIMITS = Limits()
