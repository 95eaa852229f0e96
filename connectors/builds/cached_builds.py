"""Builds of a query whose results the caller's `PruningCache` holds already, so that they are not run.

A build is found by its `BuildKey` and by the limits of a key set, and kept only where its key is the same before and
after it ran: no conf was set, and no file that it reads was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from connectors.builds.build_keys import BuildKey, BuildKeys
from connectors.builds.materialized import MaterializedRows
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.jobs.runner import BuildScheduler
from pruning.keys.cache import PruningCache
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.reasons import Reason, ReasonCode

# A row is an object over an array, beside its bytes; what else a summary and an entry are made of.
_BYTES_BY_ROW, _BYTES_BY_ENTRY = 64, 4096


@dataclass(frozen=True, slots=True)
class _CachedBuild:
    """The result of a build as the cache holds it."""

    keys: KeySummary
    rows: MaterializedRows | None

    @property
    def nbytes(self) -> int:
        rows = 0 if self.rows is None else self.rows.nbytes + self.rows.count * _BYTES_BY_ROW
        return self.keys.nbytes + rows + _BYTES_BY_ENTRY

    def built(self, spark: SparkSession) -> BuildResult:
        rows = None if self.rows is None else self.rows.of(spark)
        return BuildResult(replace(self.keys, source="the cache"), rows, from_cache=True)


@dataclass(slots=True)
class CachedBuildRunner:
    """Runs builds as `QueryBuilds` does, but for those in `cache`; why one is not kept there is added to `reasons`.

    Trouble with the cache leaves a build to be run.
    """

    channel: BuildScheduler
    cache: PruningCache
    reasons: dict[Reason, None]
    _builds: QueryBuilds = field(init=False)
    _owner: Hashable = field(init=False)

    def __post_init__(self) -> None:
        self._builds = QueryBuilds(self.channel)
        # One and the same application: rows lie on the heap of its driver.
        context = self.channel.spark.sparkContext
        self._owner = str(context.applicationId), int(context.startTime)

    def run(self, asked: Sequence[BuildRequest]) -> list[BuildResult]:
        """The result of each build; those that have to run do so at the same time."""
        keys = BuildKeys(self.channel.spark, [(each.plan, each.key) for each in asked])
        before = keys.now()
        found = [self._found(each.name, key) for each, key in zip(asked, before, strict=True)]
        missing = [at for at, built in enumerate(found) if built is None]
        if not missing:
            return [built for built in found if built is not None]
        ran = dict(zip(missing, self._builds.run([asked[at] for at in missing]), strict=True))
        may_be_kept = any(isinstance(before[at], BuildKey) for at in missing)
        after = keys.now() if may_be_kept else before
        for at, built in ran.items():
            self._keep(asked[at].name, before[at], after[at], built)
        return [ran[at] if built is None else built for at, built in enumerate(found)]

    def _found(self, name: str, key: BuildKey | str) -> BuildResult | None:
        if isinstance(key, str):
            self._refuse(name, key)
            self.cache.missed()
            return None
        found = self.cache.find(self._owner, self._full(key))
        return found.built(self.channel.spark) if isinstance(found, _CachedBuild) else None

    def _full(self, key: BuildKey) -> Hashable:
        return key, KeyLimits.of(self.channel.options)

    def _refuse(self, name: str, why: str) -> None:
        self.reasons[Reason(ReasonCode.NOT_CACHED, name, why)] = None

    def _keep(self, name: str, before: BuildKey | str, after: BuildKey | str, built: BuildResult) -> None:
        if isinstance(before, str) or isinstance(built.keys, Reason):
            return
        why = _why_not(before, after, built.keys)
        kept = _CachedBuild(built.keys, None if built.rows is None else built.rows.held())
        nbytes = kept.nbytes + before.nbytes
        if not why and not self.cache.keep(self._owner, self._full(before), kept, nbytes):
            why = f"{nbytes:,} bytes, at most {self.cache.max_bytes:,} are held"
        if why:
            self._refuse(name, why)


def _why_not(before: BuildKey, after: BuildKey | str, keys: KeySummary) -> str:
    """Why another run may give something else; empty where none will."""
    if isinstance(after, BuildKey) and before.session != after.session:
        return "confs were set meanwhile"
    if any(each.code is ReasonCode.UNREPEATABLE_KEYS for each in keys.reasons):
        return "another run may give other rows"
    return "" if before == after else "a file of it was written meanwhile"
