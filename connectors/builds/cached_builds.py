"""Builds of a query with the caller's `PruningCache`: a build whose result is cached is not run.

A build is found by its `BuildFingerprint` and by the limits of a key set. Its result is cached only if its key is the
same before and after it ran, so that no conf was set and no file that it reads was written meanwhile.

A key has three parts: the confs of the session, the operators of the build's plan (`PlanFingerprint.java`), and a
fingerprint of each leaf of the plan by its connector. Operators are projections, filters, joins and aggregates; a build
with any other operator has no key. Spark's own canonical form is no key: it is the same for 0.0 and -0.0, and for sums
of doubles in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.builds.materialized import MaterializedRows
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.builds.stored import StoredBuild
from connectors.connector_names import noted_confs
from connectors.jobs.runner import BuildScheduler
from connectors.registry import fingerprints
from connectors.spark.jvm import JavaFile, error_kind, instance, jvm_session
from connectors.spark.plan_facts import FINGERPRINT_TEXT, refused
from pruning.keys.cache import PruningCache
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.reasons import Reason, ReasonCode

# Estimated overhead in bytes: the Java object and array of a row; the Python objects of an entry.
_BYTES_BY_ROW, _BYTES_BY_ENTRY = 64, 4096


@dataclass(frozen=True, slots=True)
class _CachedBuild:
    """The cached result of a build."""

    keys: KeySummary
    rows: MaterializedRows | None

    @property
    def nbytes(self) -> int:
        rows = 0 if self.rows is None else self.rows.nbytes + self.rows.count * _BYTES_BY_ROW
        return self.keys.nbytes + rows + _BYTES_BY_ENTRY

    def built(self, spark: SparkSession) -> BuildResult:
        rows = None if self.rows is None else self.rows.of(spark)
        return BuildResult(self.keys, rows, from_cache=True)


@dataclass(slots=True)
class CachedBuildRunner:
    """Runs builds as `QueryBuilds` does, except those in `cache`. A build runs if the cache fails."""

    scheduler: BuildScheduler
    cache: PruningCache
    _builds: QueryBuilds = field(init=False)
    _owner: Hashable = field(init=False)

    def __post_init__(self) -> None:
        self._builds = QueryBuilds(self.scheduler)
        # Entries belong to one application, since rows lie on the heap of its driver.
        context = self.scheduler.spark.sparkContext
        self._owner = str(context.applicationId), int(context.startTime)

    def run(self, requests: Sequence[BuildRequest]) -> list[BuildResult]:
        """The result of each build; builds that are not cached run at the same time."""
        current = BuildFingerprints(self.scheduler.spark, [(each.plan, each.key) for each in requests])
        before = current.now()
        found = [self._found(key, each) for key, each in zip(before, requests, strict=True)]
        missing = [at for at, built in enumerate(found) if built is None]
        if not missing:
            return [built for built in found if built is not None]
        ran = dict(zip(missing, self._builds.run([requests[at] for at in missing]), strict=True))
        may_be_cached = any(isinstance(before[at], BuildFingerprint) for at in missing)
        after = current.now() if may_be_cached else before
        for at, built in ran.items():
            why = self._store(before[at], after[at], requests[at], built)
            ran[at] = replace(built, reasons=(Reason(ReasonCode.NOT_CACHED, requests[at].name, why),)) if why else built
        return [ran[at] if built is None else built for at, built in enumerate(found)]

    def _found(self, key: BuildFingerprint | str, request: BuildRequest) -> BuildResult | None:
        if isinstance(key, str):
            self.cache.missed()
            return None
        found = self.cache.find(self._owner, self._full(key, request))
        return found.built(self.scheduler.spark) if isinstance(found, _CachedBuild) else None

    def _full(self, key: BuildFingerprint, request: BuildRequest) -> Hashable:
        limits = self.scheduler.options.limits
        most = (limits.joined_rows, limits.joined_long_rows) if request.brings_rows else None
        return key, KeyLimits.of(self.scheduler.options), most

    def _store(
        self, before: BuildFingerprint | str, after: BuildFingerprint | str, request: BuildRequest, built: BuildResult
    ) -> str:
        """Caches the result of a build; the reason why it is not cached, empty if it is or if there is no result."""
        if isinstance(before, str):
            return before
        if isinstance(built.keys, Reason):
            return ""
        if isinstance(built.rows, StoredBuild):
            return "its rows are in the storage of executors"
        why = _why_not(before, after, built.keys)
        entry = _CachedBuild(built.keys, None if built.rows is None else built.rows.detached())
        nbytes = entry.nbytes + before.nbytes
        if not why and not self.cache.keep(self._owner, self._full(before, request), entry, nbytes):
            why = f"{nbytes:,} bytes, at most {self.cache.max_bytes:,} are held"
        return why


def _why_not(before: BuildFingerprint, after: BuildFingerprint | str, keys: KeySummary) -> str:
    """The reason why another run may give another result; empty if there is none."""
    if isinstance(after, BuildFingerprint) and before.session != after.session:
        return "confs were set meanwhile"
    if any(each.code is ReasonCode.UNREPEATABLE_KEYS for each in keys.reasons):
        return "another run may give other rows"
    return "" if before == after else "a file of it was written meanwhile"


logger = logging.getLogger("scanprune")

_BUILDS = JavaFile("connectors.builds", "BuildFingerprints", others=("PlanFingerprint", FINGERPRINT_TEXT))
_TROUBLE = (Py4JError, PySparkException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class BuildFingerprint:
    """The key of a build: fingerprints of the session, of the operators, and of the leaves in the plan's order."""

    session: str
    operators: str
    leaves: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """The number of characters of all fingerprints."""
        return len(self.session) + len(self.operators) + sum(map(len, self.leaves))


@dataclass(frozen=True, slots=True)
class _Operators:
    """The operators of one build, and the file formats of its leaves."""

    fingerprint: str
    formats: tuple[str, ...]


@dataclass(slots=True)
class BuildFingerprints:
    """The cache keys of builds, each a JVM plan and the expression of its keys.

    A build whose key is the same before and after it ran has read the confs, tables and files that the key names.
    """

    spark: SparkSession
    builds: Sequence[tuple[Any, Any]]
    _java: Any = None
    _operators: Sequence[_Operators | str] = ()
    _leaves: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def now(self) -> list[BuildFingerprint | str]:
        """The key of each build as of this moment, or the reason why it has none."""
        try:
            return self._now()
        except _TROUBLE as error:
            logger.debug("Fingerprinting builds failed", exc_info=True)
            return [error_kind(error)] * len(self.builds)

    def _now(self) -> list[BuildFingerprint | str]:
        if self._java is None:
            self._java = instance(self.spark, _BUILDS, jvm_session(self.spark))
        # First, so that comparing keys after the build shows if confs were set since its leaves were fingerprinted.
        session = str(self._java.session(noted_confs(self.spark)))
        self._operators = self._operators or [_operators(self._java, *each) for each in self.builds]
        formats = [each for build in self._operators if isinstance(build, _Operators) for each in build.formats]
        leaves = iter(fingerprints(self.spark, formats, self._leaves_of))
        return [_fingerprint(session, build, leaves) for build in self._operators]

    def _leaves_of(self, formats: tuple[str, ...]) -> Any:
        if formats not in self._leaves:
            self._leaves[formats] = self._java.leaves(" ".join(formats))
        return self._leaves[formats]


def _operators(java: Any, plan: Any, key: Any) -> _Operators | str:
    try:
        text = str(java.operators(plan, key))
    except _TROUBLE as error:
        logger.debug("Fingerprinting a plan failed", exc_info=True)
        return error_kind(error)
    if (why := refused(text)) is not None:
        return why
    fingerprint, *formats = text.split(" ")
    return _Operators(fingerprint, tuple(formats))


def _fingerprint(session: str, build: _Operators | str, leaves: Iterator[str | Reason]) -> BuildFingerprint | str:
    if isinstance(build, str):
        return build
    own = list(islice(leaves, len(build.formats)))
    why = next((each.detail for each in own if isinstance(each, Reason)), None)
    return BuildFingerprint(session, build.fingerprint, tuple(map(str, own))) if why is None else why
