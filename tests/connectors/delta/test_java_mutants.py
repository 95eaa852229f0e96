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
    checks.test_conditions_on_a_pruned_query(spark, lake, "part = 'p 1'")


def check_kept_files(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_kept_files_are_not_listed_again(spark, lake, "plain")


def check_equality(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_indexes_are_equal_where_their_files_are(spark, lake)


def check_later_conditions(spark, lake, tmp_path):  # noqa: ARG001
    checks.test_conditions_on_a_pruned_query_still_skip_files(spark, lake)


def check_new_version(spark, lake, tmp_path):
    table, _ = lake
    own = f"delta.`{tmp_path}/own`"
    spark.sql(f"CREATE TABLE {own} USING delta AS SELECT * FROM kept_sales")
    query = query_of(lake, "plain").replace(table("plain"), own)
    before = rows_of(prune(spark.sql(query), options=OPTIONS))
    spark.sql(f"INSERT INTO {own} VALUES (900, 22, 'p 1')")
    after = rows_of(prune(spark.sql(query), options=OPTIONS))
    assert sorted([*before, (900, 22, "p 1")], key=repr) == after


MUTANTS = {
    "partition-conditions-are-not-evaluated": JavaMutant(
        "if (((Boolean) holds).booleanValue()) {", "if (true) {", check_partitions
    ),
    "all-files-are-kept": JavaMutant("if (paths.contains(file.path())) {", "if (true) {", check_kept_files),
    "indexes-of-other-files-are-equal": JavaMutant(" && files.equals(that.files)", "", check_equality),
    "later-conditions-skip-no-file": JavaMutant(
        "return areKnown(dataFilters) || left.size() < 2 ? left", "return true ? left", check_later_conditions
    ),
    "file-lists-are-kept-over-versions": JavaMutant(
        "Long.valueOf(snapshot.version()), commit,\n"
        "            Long.valueOf(snapshot.logSegment().lastCommitFileModificationTimestamp())",
        "Long.valueOf(0L)",
        check_new_version,
    ),
}
INTACT = JavaMutant("class DeltaFileLists", "class DeltaFileLists", check_new_version)


@contextmanager
def compiled(spark, mutant: JavaMutant) -> Iterator[None]:
    """The session uses the mutant of the file index in this block, and the intact one afterwards."""
    classes, slot = spark._jvm.__dict__[jvm._CLASSES], state_of(spark).slot(_FileLists)
    intact, kept, source = classes.pop(_LISTS.name), slot.java, JavaFile.source

    def replaced(java: JavaFile) -> str:
        text = source(java)
        if java.name != _LISTS.name:
            return text
        assert 1 == text.count(mutant.part), f"bring the mutant of {mutant.part!r} up to date"
        return text.replace(mutant.part, mutant.replacement)

    slot.java = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JavaFile, "source", replaced)
        try:
            yield
        finally:
            classes[_LISTS.name], slot.java = intact, kept


def checked(spark, lake, tmp_path, mutant: JavaMutant) -> None:
    """Runs the check of a mutant in a thread of its own: py4j keeps methods by class name for each thread."""
    table, _ = lake
    # The tables, and the intact classes.
    rows_of(prune(spark.sql(query_of(lake, "plain")), options=OPTIONS))
    table("parts")
    with compiled(spark, mutant), ThreadPoolExecutor(1) as thread:
        thread.submit(mutant.check, spark, lake, tmp_path).result()


def test_check_passes_without_a_mutation(spark, lake, tmp_path):
    checked(spark, lake, tmp_path, INTACT)


@pytest.mark.quick(len(MUTANTS))
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fails_its_check(spark, lake, tmp_path, name):
    with pytest.raises(AssertionError):
        checked(spark, lake, tmp_path, MUTANTS[name])
