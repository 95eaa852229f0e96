"""Break the file lists from memory on purpose: their tests have to fail, each in a session that compiled the mutant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import SparkSession

from pruning import enable
from tests.connectors.delta.test_java_mutants import JavaMutant, compiled
from tests.session import test_early_list_keys as keys
from tests.session import test_early_list_sessions as sessions
from tests.session import test_early_list_versions as versions
from tests.session import test_early_lists as lists
from tests.session.early_lists import OPTIONS, interpreted, lake, memory, on, own, stock, unlisted
from tests.session.test_early_list_keys import moments

__all__ = ["interpreted", "lake", "memory", "moments", "on", "own", "stock"]

pytestmark = pytest.mark.spark


WRITE = partial(versions.check_write, command="insert-from-itself")
MUTANTS = {
    "the-key-forgets-the-version": JavaMutant(
        "Long.valueOf(snapshot.version()), sums.isDefined() ? ((VersionChecksum) sums.get()).txnId() : sums,\n"
        "            Long.valueOf(snapshot.logSegment().lastCommitFileModificationTimestamp())",
        "Long.valueOf(0L)",
        partial(versions.check_commit, commit="insert"),
    ),
    "the-key-forgets-the-conditions": JavaMutant(
        "DeltaFileLists.identity(snapshot), confs, named}",
        "DeltaFileLists.identity(snapshot), confs, Integer.valueOf(named.size())}",
        partial(lists.check_query, query="union-of-one"),
    ),
    "the-key-forgets-the-confs": JavaMutant(
        "DeltaFileLists.identity(snapshot), confs, named}",
        "DeltaFileLists.identity(snapshot), named}",
        keys.check_zones,
    ),
    "the-key-forgets-the-time-zones": JavaMutant(
        "new StringBuilder(java.util.TimeZone.getDefault().getID());\n"
        "        text.append('\\0').append(own.sessionLocalTimeZone());",
        "new StringBuilder();",
        keys.check_zones_of_the_machine,
    ),
    "the-key-has-the-last-commit": JavaMutant("!name.equals(LAST_COMMIT) && ", "", keys.check_own_commit),
    "the-key-has-the-confs-of-pruning": JavaMutant(" && !name.startsWith(PRUNING)", "", keys.check_confs_of_pruning),
    "the-key-has-conditions-that-are-not-used": JavaMutant(
        "named.add(isUsed ? (Object) PrunedFileIndex.named(condition) : NOT_USED);",
        "named.add(PrunedFileIndex.named(condition));",
        partial(keys.check_unused, condition="rand() + k >= 0"),
    ),
    "functions-of-users-are-repeatable": JavaMutant(
        "condition instanceof UserDefinedExpression || condition", "condition", keys.check_functions
    ),
    "metadata-of-files-is-repeatable": JavaMutant(
        "if (isForeign || isNew || isOfFile) {",
        "if (isForeign || isNew) {",
        partial(keys.check_listed_each_time, condition=keys.METADATA),
    ),
    "rewritten-conditions-are-kept": JavaMutant("if (!isKept(scan)) {", "if (false) {", keys.check_rewritten),
    "uses-of-conditions-are-mixed-up": JavaMutant(
        "has(scan.partitionFilters(), condition) ? PARTITION",
        "has(scan.partitionFilters(), condition) ? DATA",
        partial(lists.check_query, query="both"),
    ),
    "lists-have-no-weight": JavaMutant(
        "this.weight = 1L + scan.files().size() + ScanKey.weight(conditions);", "this.weight = 0L;", keys.check_memory
    ),
    "conditions-have-no-weight": JavaMutant(
        "scan.files().size() + ScanKey.weight(conditions);", "scan.files().size();", keys.check_memory
    ),
    "the-oldest-list-goes": JavaMutant(
        "new java.util.LinkedHashMap(16, 0.75f, true)", "new java.util.LinkedHashMap()", keys.check_memory
    ),
    "a-conf-switches-nothing-off": JavaMutant(
        "\n                && ((java.util.function.BooleanSupplier) rule).getAsBoolean()) {",
        ") {",
        sessions.check_switches,
    ),
    "all-sessions-are-enabled": JavaMutant(
        "boolean isListed(LogicalPlan plan) {\n        return lists.areFor(plan, session);",
        "boolean isListed(LogicalPlan plan) {\n        return true;",
        sessions.check_switches,
    ),
    "transactions-are-like-others": JavaMutant("OptimisticTransaction$.MODULE$.getActive().isDefined() || ", "", WRITE),
    "a-rule-that-is-excluded-acts": JavaMutant(" || isExcluded();", ";", keys.check_excluded),
    "limits-are-plain-scans": JavaMutant(
        "pass.unlisted(deltas.snapshotToScan());",
        "pass.scan(deltas.snapshotToScan(), partitionFilters);",
        partial(lists.check_limit, query="alone"),
    ),
    "a-cancelled-query-lists-again": JavaMutant(
        "if (isEnd(failed) || pass != null && pass.hasFailed()) {",
        "if (false) {",
        partial(sessions.check_cancelled, query="filter"),
    ),
    "a-list-that-fails-is-made-again": JavaMutant(" || pass != null && pass.hasFailed()", "", sessions.check_failure),
    "variables-of-lambdas-have-a-key": JavaMutant(
        "if (isForeign || isNew || isOfFile) {",
        "if (isForeign || isOfFile) {",
        keys.check_lambda,
    ),
    "the-rule-comes-after-that-of-delta": JavaMutant(
        "makers.insert(place, made);", "makers.append(made);", partial(lists.check_query, query="join")
    ),
    "the-rule-comes-before-those-of-users": JavaMutant(
        "makers.insert(place, made);",
        "makers.prepend(made);",
        partial(sessions.check_rule_of_user, query="count", place="before"),
    ),
    "the-second-pass-knows-what-is-kept-alone": JavaMutant("listed.put(key, scan);", "", keys.check_no_memory),
}
INTACT = JavaMutant("class DeltaFileLists {", "class DeltaFileLists {", WRITE)


@pytest.fixture
def checked(spark: SparkSession, request: pytest.FixtureRequest) -> Callable[[JavaMutant], None]:
    """Runs the check of a mutant in a thread of its own: py4j keeps methods by class name for each thread.

    Fixtures have the names of the arguments of the check.
    """

    def run(mutant: JavaMutant) -> None:
        parameters = inspect.signature(mutant.check).parameters.values()
        given = {each.name: request.getfixturevalue(each.name) for each in parameters if each.default is each.empty}

        def check() -> None:
            with unlisted(spark):
                enable(spark, options=OPTIONS)
                mutant.check(**given)

        # The intact classes.
        enable(spark, options=OPTIONS)
        with compiled(spark, mutant), ThreadPoolExecutor(1) as thread:
            done = thread.submit(check)
            done.exception()
        done.result()

    return run


@pytest.mark.parametrize("check", [WRITE, keys.check_memory, keys.check_zones_of_the_machine])
def test_check_passes_without_a_mutation(checked, check):
    checked(replace(INTACT, check=check))


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fails_its_check(checked, name):
    with pytest.raises(AssertionError):
        checked(MUTANTS[name])
