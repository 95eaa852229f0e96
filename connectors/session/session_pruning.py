"""Pruning of every query that a session plans: `enable()`, `disable()`, `history()`.

A rule at the end of Spark's optimiser, written in Java, hands each plan that is about to run to this module, in the
thread that plans the query, and takes the pruned plan back. The plan is pruned by the code that prunes a DataFrame.
"""

from __future__ import annotations

import _thread
import logging
import threading
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from connectors.connector_names import session_names
from connectors.pipeline.earlier_queries import EarlierQueries, QueryLessons
from connectors.pipeline.explained_query import shown_plan
from connectors.pipeline.pruned_command import prune_command
from connectors.pipeline.pruned_query import PrunedQuery, prune_plan
from connectors.pipeline.pruned_stream import prune_stream
from connectors.pipeline.records import log_verdict
from connectors.registry import plan_early
from connectors.session.other_sessions import OtherSessions
from connectors.session.refusals import Refusals, StreamRefusals
from connectors.session.session_history import EVERY, QueryRecord, SessionHistory, Wanted, origin_of, origins_of
from connectors.spark.jvm import (
    JavaFile,
    has_jvm,
    instance,
    is_stopped,
    jvm_session,
    optimizer_rules,
    set_optimizer_rules,
    start_callbacks,
)
from connectors.spark.session import option_confs
from connectors.spark.session_state import state_of
from connectors.spark.versions import version_refusal, warn_of_version
from pruning.errors import UnsupportedSessionError
from pruning.keys.cache import PruningCache
from pruning.limits import LIMITS, Limits
from pruning.options import CONF_PREFIX, PruningOptions, check_switch
from pruning.query.lessons import Lessons
from pruning.results.prune_report import PruneReport
from pruning.results.query_origin import QueryOrigin
from pruning.results.verdict import NOTHING_TO_PRUNE

logger = logging.getLogger("scanprune")

# Seconds after which an interrupt while a query is planned comes again, when the query runs.
_INTERRUPT_AGAIN_SECONDS = 0.05

_RULE = JavaFile(
    "connectors.session",
    "SessionRule",
    others=(
        "PlannedQuery",
        "QueryOrigin",
        "NewSessions",
        "PlainQueries",
        "PlanPurpose",
        "StreamPlan",
        "connectors.spark.Precheck",
        "connectors.spark.FileScan",
        "connectors.spark.PlanCopy",
        "connectors.spark.IndexCalls",
    ),
)


class PrunedPlanError(Exception):
    """A pruned plan that does not give the columns of its query."""


@dataclass(slots=True)
class SessionPruning:
    """The pruning of one session and of others that have its rule; called by Java with each planned query."""

    spark: SparkSession
    options: PruningOptions | None
    cache: PruningCache | None
    queries: SessionHistory
    rule: Any = None
    _refusals: Refusals = field(default_factory=Refusals)
    _lessons: Lessons = field(default_factory=Lessons)
    _others: OtherSessions = field(default_factory=OtherSessions)
    _streams: StreamRefusals = field(default_factory=StreamRefusals)
    _tells: bool = False

    def apply(self, event: str, query: Any) -> Any:
        """Called by Java: the plan to run, or to show, in place of that of a `PlannedQuery`; None if that stays."""
        try:
            match event:
                case "query":
                    return self._planned(query)
                case "shown":
                    return self._shown(query)
                case "plain":
                    logger.info("%s", NOTHING_TO_PRUNE)
                case "rejected":
                    error = PrunedPlanError("the pruned plan has other columns, or reads other batches of a stream")
                    execution = origin_of(str(query.origin())).execution_id
                    self.queries.replace(execution, PrunedQuery.failed(error, PruningOptions()))
                case _:
                    logger.warning("SessionRule.java tells of %r, which is not known", event)
        except KeyboardInterrupt:
            # Raised here, it would break the connection on which Java waits for this call.
            threading.Timer(_INTERRUPT_AGAIN_SECONDS, _thread.interrupt_main).start()
        return None

    def _asked(self, query: Any) -> tuple[SparkSession, PruningOptions]:
        """The session of a query, and its options."""
        spark = self.spark if query.isOwn() else self._others.get(self.spark, query.session(), self._limits)
        confs = option_confs(spark, CONF_PREFIX)
        check_switch(confs)
        return spark, self.options or PruningOptions.from_confs(confs)

    def _shown(self, query: Any) -> Any:
        """A plan that is only shown, with the filters that its builds will make; None if there are none."""
        try:
            spark, options = self._asked(query)
        except Exception:
            # A wrong option is told of when the query runs.
            logger.debug("Showing a plan failed", exc_info=True)
            return None
        return shown_plan(spark, query.plan(), options)

    def _planned(self, query: Any) -> Any:
        """The plan of a query that is about to run, None if it stays as it is; its record enters the history."""
        is_stream, origin = False, QueryOrigin()
        record: QueryRecord
        try:
            is_stream, origin = bool(query.isStream()), origin_of(str(query.origin()))
            spark, options = self._asked(query)
            earlier = EarlierQueries(self.cache)
            if is_stream:
                plan, record = prune_stream(spark, query.plan(), str(query.state()), options, earlier)
            elif query.isOfCommand():
                plan, record = prune_command(spark, query.plan(), options, earlier)
            else:
                # The keys of micro-batches and commands are new rows, of which no shape tells.
                earlier = replace(earlier, lessons=QueryLessons(spark, self._lessons, origin.execution_id))
                plan, record = self._pruned(spark, query, options, earlier)
            if origin.execution_id is not None:
                record.measure_only(origin.execution_id)
        except Exception as error:  # noqa: BLE001 - the record tells of it
            plan, record = None, PrunedQuery.failed(error, self.options or PruningOptions())
        if record.cancelled is not None:
            query.cancel(record.cancelled)
        if isinstance(record, PrunedQuery) and is_stream:
            session = str(query.session().sessionUUID())
            if not self._streams.is_new(session, record, self._limits):
                return plan
        self.add_plain()
        self.queries.add(origin, record)
        with suppress(Exception):
            log_verdict(record)
        return plan

    def follow_log(self) -> None:
        """Lets Java tell of queries with nothing to prune while the logger wants a line for each query.

        A level that is set later counts from the next query that is handed over, or the next look at the history.
        """
        tells = logger.isEnabledFor(logging.INFO)
        if tells != self._tells and (rule := self.rule) is not None:
            rule.tellAll(tells)
            self._tells = tells

    def add_plain(self) -> None:
        """Adds to the history the queries that Java has not handed over since the last call."""
        self.follow_log()
        if (rule := self.rule) is not None:
            self.queries.add_plain(origins_of(str(rule.plainQueries())))

    def _pruned(
        self, spark: SparkSession, query: Any, options: PruningOptions, earlier: EarlierQueries
    ) -> tuple[Any, PrunedQuery]:
        """The pruned plan and its record; a query that had nothing to prune before is not planned again."""
        plan = query.plan()
        if query.isWritten():
            # The plan has no versions, so that a refusal of before may be out of date.
            return prune_plan(spark, plan, options, earlier)
        try:
            digest = int(query.digest())
        except Py4JError:
            # Some nodes have no form without names and ids.
            return prune_plan(spark, plan, options, earlier)
        known = self._refusals.get(digest, options)
        if known is not None:
            return None, known
        found, record = prune_plan(spark, plan, options, earlier)
        if found is None and record.is_lasting:
            self._refusals.add(digest, options, record, options.limits)
        return found, record

    @property
    def _limits(self) -> Limits:
        return _limits(self.options)

    class Java:
        """The interface by which py4j calls the object."""

        implements = ("java.util.function.BiFunction",)


def _limits(options: PruningOptions | None) -> Limits:
    return (PruningOptions() if options is None else options).limits


@dataclass(eq=False)
class _State:
    """The pruning of a session, None where it was not enabled or was disabled; and the queries of before."""

    pruning: SessionPruning | None = None
    queries: SessionHistory = field(default_factory=lambda: SessionHistory(LIMITS.history_queries))


class _Slot:
    """The place for the state in one of the Python objects of a session; None before it is looked for."""

    state: _State | None = None


# By the id of the JVM's session, of which several Python objects may exist.
_STATES: WeakValueDictionary[str, _State] = WeakValueDictionary()
_LOCK = threading.Lock()


def _state(spark: SparkSession) -> _State:
    """The state of a session, which all its Python objects share and keep."""
    slot = state_of(spark).slot(_Slot)
    if slot.state is None:
        session = str(jvm_session(spark).sessionUUID())
        with _LOCK:
            slot.state = _STATES.setdefault(session, _State())
    return slot.state


def check_session(spark: object, asked: str) -> None:
    """Raises `UnsupportedSessionError` for anything but a running classic session; `asked` is what it was given for."""
    if isinstance(spark, SparkSession) and has_jvm(spark):
        if is_stopped(spark):
            raise UnsupportedSessionError(f"Cannot {asked}: it was stopped; start another one")
        return
    is_remote = type(spark).__module__.startswith("pyspark.sql.connect")
    found = "a session of Spark Connect" if is_remote else f"a {type(spark).__name__}"
    raise UnsupportedSessionError(f"Cannot {asked}: expected a SparkSession with a JVM of its own, found {found}")


def enable(spark: SparkSession, options: PruningOptions | None, cache: PruningCache | None) -> None:
    """Prunes every query that the session plans from now on; a session that is enabled gets the new options."""
    disable(spark)
    if version_refusal(spark) is not None:
        warn_of_version(spark)
        return
    state = _state(spark)
    most = _limits(options).history_queries
    pruning = SessionPruning(spark, options, cache, state.queries.resized(most))
    start_callbacks(spark)
    names = (" ".join(each) for each in astuple(session_names(spark)))
    pruning.rule = instance(spark, _RULE, jvm_session(spark), pruning, *names, most)
    pruning.follow_log()
    set_optimizer_rules(spark, [*optimizer_rules(spark), pruning.rule])
    plan_early(spark)
    state.pruning, state.queries = pruning, pruning.queries


def enable_new_sessions(spark: SparkSession) -> None:
    """Prunes the queries of the sessions that start from now on beside an enabled one, until that is disabled.

    Their confs count where it was enabled without options, and its history has their queries.
    """
    pruning = _state(spark).pruning
    if pruning is not None:
        pruning.rule.addToNewSessions()


def disable(spark: SparkSession) -> None:
    """Plans the next query of the session, and of sessions cloned from it, without pruning.

    A session that was cloned from an enabled one is left alone by itself.
    """
    state = _state(spark)
    if state.pruning is not None:
        pruning, state.pruning = state.pruning, None
        pruning.rule.switchOff()
        pruning.add_plain()
        pruning.queries.forget_plans()
        # Python and Java hold each other, which neither of them would notice.
        pruning.rule = None
    rules = optimizer_rules(spark)
    others = [each for each in rules if str(each.getClass().getSimpleName()) != _RULE.name]
    if len(others) < len(rules):
        set_optimizer_rules(spark, others)


def history(spark: SparkSession, wanted: Wanted = EVERY) -> list[PruneReport]:
    """The reports of the latest queries that the session planned while it was enabled, newest first."""
    return [each.report() for each in _queries(spark).latest(wanted)]


def records(spark: SparkSession) -> list[QueryRecord]:
    """The records of those of these queries that had something to prune."""
    return _queries(spark).records()


def _queries(spark: SparkSession) -> SessionHistory:
    state = _state(spark)
    if state.pruning is not None:
        state.pruning.add_plain()
    return state.queries
