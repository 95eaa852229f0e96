"""Builds of a query whose results the caller's `PruningCache` holds already, so that they are not run.

A cached build is found by a fingerprint of its plan (`PlanFingerprint.java`), which is equal only for plans that give
the same rows, and by the confs of the session. The fingerprint covers projections, filters, joins and aggregates over
pinned files; any other plan has none, and its build runs. Spark's own canonical form is no fingerprint: it is the same
for 0.0 and -0.0, and for sums of doubles in any order.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.builds.materialized import MaterializedRows
from connectors.builds.query_builds import BuildRequest, BuildResult, QueryBuilds
from connectors.jobs.runner import BuildScheduler
from connectors.spark.jvm import JavaFile, instance, jvm_session, one_line
from connectors.spark.transfer import long_bytes
from pruning.keys.cache import PruningCache
from pruning.keys.key_set import KeyLimits
from pruning.keys.summary import KeySummary
from pruning.limits import LIMITS
from pruning.reasons import Reason, ReasonCode

logger = logging.getLogger("scanprune")

# Such as a file system that does not tell whether a file is what it was.
_TROUBLE = (Py4JError, PySparkException, OSError, ValueError)

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


@dataclass(frozen=True, slots=True)
class _Key:
    """The key of a cached build: the build, and `session`, which decides on its result beside the plan."""

    build: BuildKey
    session: bytes

    @property
    def full(self) -> Hashable:
        return self.build.named, self.session

    @property
    def nbytes(self) -> int:
        return len(self.build.named) + len(self.session)


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
        # Before plans are looked at, so that confs that are set meanwhile are seen when builds have ended.
        session = self._session()
        keys = [self._key(each, session) for each in asked]
        found = [self._found(key) for key in keys]
        missing = [at for at, built in enumerate(found) if built is None]
        if not missing:
            return [built for built in found if built is not None]
        ran = dict(zip(missing, self._builds.run([asked[at] for at in missing]), strict=True))
        is_same = session == self._session()
        for at, built in ran.items():
            self._keep(keys[at], asked[at].name, built, is_same=is_same)
        return [ran[at] if built is None else built for at, built in enumerate(found)]

    def _session(self) -> bytes | None:
        try:
            options = self.channel.options
            limits = KeyLimits.of(options), options.limits.joined_rows, options.limits.joined_long_rows
            return session_key(self.channel.spark) + repr(limits).encode()
        except _TROUBLE:
            logger.debug("Reading the confs of the session failed", exc_info=True)
            return None

    def _key(self, asked: BuildRequest, session: bytes | None) -> _Key | None:
        why = "the session does not tell its confs"
        try:
            most = self.channel.options.limits.fingerprint_files
            key = why if session is None else build_key(self.channel.spark, asked.plan, asked.key, most)
            if session is not None and isinstance(key, BuildKey):
                return _Key(key, session)
            why = str(key)
        except _TROUBLE as error:
            logger.debug("Naming the build of %s failed", asked.name, exc_info=True)
            why = one_line(error)
        self._refuse(asked.name, why)
        return None

    def _refuse(self, name: str, why: str) -> None:
        self.reasons[Reason(ReasonCode.NOT_CACHED, name, why)] = None

    def _found(self, key: _Key | None) -> BuildResult | None:
        if key is None:
            self.cache.missed()
            return None
        found = self.cache.find(self._owner, key.full)
        return found.built(self.channel.spark) if isinstance(found, _CachedBuild) else None

    def _keep(self, key: _Key | None, name: str, built: BuildResult, *, is_same: bool) -> None:
        if key is None or isinstance(built.keys, Reason):
            return
        try:
            why = _why_not(key, built.keys) if is_same else "confs were set meanwhile"
        except _TROUBLE as error:
            logger.debug("Looking after the build of %s failed", name, exc_info=True)
            why = one_line(error)
        kept = _CachedBuild(built.keys, None if built.rows is None else built.rows.held())
        nbytes = kept.nbytes + key.nbytes
        if not why and not self.cache.keep(self._owner, key.full, kept, nbytes):
            why = f"{nbytes:,} bytes, at most {self.cache.max_bytes:,} are held"
        if why:
            self._refuse(name, why)


def _why_not(key: _Key, keys: KeySummary) -> str:
    """Why another run may give something else; empty where none will."""
    if any(each.code is ReasonCode.UNREPEATABLE_KEYS for each in keys.reasons):
        return "another run may give other rows"
    return "" if key.build.is_settled() else "a file of it was written meanwhile"


# A file that is written once more within a tick of the store's clock keeps its time, and clocks differ by seconds.
_SETTLED_MILLISECONDS = 60_000
# The fingerprint is written in two bytes for each character.
_ENCODING = "utf-16-be"
_REFUSED = "!".encode(_ENCODING)
_FINGERPRINT = JavaFile("connectors.builds", "PlanFingerprint")


@dataclass(frozen=True, slots=True)
class BuildKey:
    """A fingerprint: `named` is equal only for builds that give the same rows and keys under the same confs."""

    named: bytes
    _found: Any

    def is_settled(self) -> bool:
        """True where every listed Parquet file is as it was listed, and was last written a minute ago or earlier.

        True before and after a build, no file was written meanwhile. Files of versions are never written again.
        """
        return not str(self._found.unsettled())


def build_key(spark: SparkSession, plan: Any, key: Any, most_files: int = LIMITS.fingerprint_files) -> BuildKey | str:
    """The key of a build of `key`, an expression of the JVM, over the rows of `plan`; why there is none.

    There is none for a plan that reads more than `most_files` Parquet files without versions.
    """
    found = _made(spark, plan, key, most_files)
    named = long_bytes(spark, found.bytes())
    if named.startswith(_REFUSED):
        return named.removeprefix(_REFUSED).decode(_ENCODING)
    return BuildKey(named, found)


def session_key(spark: SparkSession) -> bytes:
    """Equal only for sessions in which equal plans give the same rows: all confs that were set, and the time zone."""
    return long_bytes(spark, _made(spark, None, None, 0).bytes())


def _made(spark: SparkSession, plan: Any, key: Any, most_files: int) -> Any:
    session = jvm_session(spark)
    return instance(spark, _FINGERPRINT, session, plan, key, _SETTLED_MILLISECONDS, most_files)
