"""Break the Java file index on purpose: its tests have to fail, each in a session that has compiled the mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from connectors.delta.file_index import _LISTS, _FileLists
from connectors.spark import jvm
from connectors.spark.jvm import JavaFile
from connectors.spark.session_state import state_of
from pruning import prune
from tests.connectors.delta import test_file_index as checks
from tests.connectors.delta.test_file_index import OPTIONS, lake, query_of, rows_of

__all__ = ["lake"]

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class JavaMutant:
    """A part of the sources of the file index that occurs once, its replacement, and the check that has to fail."""

    part: str
    replacement: str
    check: Callable[..., None]


def check_partitions(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_conditions_above_a_pruned_query(spark, lake, prune, "part = 'p 1'")


def check_kept_files(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_kept_files_are_not_listed_again(spark, lake, "plain")


def check_equality(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_indexes_are_equal_iff_their_files_are(spark, lake)


def check_later_conditions(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_conditions_above_a_pruned_query_skip_files(spark, lake)


def check_several_files(spark, lake, tmp_path):  # noqa: ARG001
    """Several files are left, which Delta could list again."""
    query = query_of(lake, "parts")
    expected = rows_of(spark.sql(query))
    result = prune(spark.sql(query), options=OPTIONS)
    assert expected == checks.rows_without_listing(spark, result)
    assert {"parts": (3, 3)} == checks.files(result)


MUTANTS = {
    "partition-conditions-are-not-evaluated": JavaMutant(
        "if (((Boolean) holds).booleanValue()) {", "if (true) {", check_partitions
    ),
    "all-files-are-kept": JavaMutant("if (paths.contains(file.path())) {", "if (true) {", check_kept_files),
    "indexes-of-other-files-are-equal": JavaMutant(" && files.equals(that.files)", "", check_equality),
    "later-conditions-skip-no-file": JavaMutant(
        "return unknown.isEmpty() || left.size() < 2 ? left", "return true ? left", check_later_conditions
    ),
    "delta-is-asked-by-what-pruning-has-added": JavaMutant(
        "if (!isSeen(condition) && !known.contains(named(condition))) {",
        "if (!isSeen(condition)) {",
        check_several_files,
    ),
    "delta-is-asked-by-what-spark-infers": JavaMutant(
        "if (!isSeen(condition) && !known.contains(named(condition))) {",
        "if (!known.contains(named(condition))) {",
        check_several_files,
    ),
}
INTACT = JavaMutant("class DeltaFileLists", "class DeltaFileLists", check_several_files)


@contextmanager
def compiled(spark, mutant: JavaMutant) -> Iterator[None]:
    """The session uses the mutant of the file index in this block, and the intact one afterwards."""
    classes, slot, source = spark._jvm.__dict__[jvm._CLASSES], state_of(spark).slot(_FileLists), JavaFile.source
    # Failures, not assertions: an assertion would be taken for that of a check, or for trouble that leaves a query
    # unpruned.
    if (count := source(_LISTS).count(mutant.part)) != 1:
        pytest.fail(f"{mutant.part!r} is {count} times in the file index: bring the mutant up to date")

    def replaced(java: JavaFile) -> str:
        text = source(java)
        return text.replace(mutant.part, mutant.replacement) if java.name == _LISTS.name else text

    intact, kept, slot.java = classes.pop(_LISTS.name), slot.java, None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JavaFile, "source", replaced)
        try:
            yield
        finally:
            is_compiled = _LISTS.name in classes
            classes[_LISTS.name], slot.java = intact, kept
    if not is_compiled:
        pytest.fail(f"The mutant {mutant.replacement!r} was not compiled, or not used")


def checked(spark, lake, tmp_path, mutant: JavaMutant) -> None:
    """Runs the check of a mutant in a thread of its own: py4j keeps methods by class name for each thread."""
    table, _ = lake
    # The tables, and the intact classes.
    rows_of(prune(spark.sql(query_of(lake, "plain")), options=OPTIONS))
    table("parts")
    with compiled(spark, mutant), ThreadPoolExecutor(1) as thread:
        done = thread.submit(mutant.check, spark, lake, tmp_path)
        done.exception()
    done.result()


def test_check_passes_without_a_mutation(spark, lake, tmp_path):
    checked(spark, lake, tmp_path, INTACT)


@pytest.mark.quick(len(MUTANTS))
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fails_its_check(spark, lake, tmp_path, name):
    with pytest.raises(AssertionError):
        checked(spark, lake, tmp_path, MUTANTS[name])
