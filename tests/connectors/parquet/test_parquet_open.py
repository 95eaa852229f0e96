from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pytest

from connectors.base import OpaqueTable
from connectors.parquet.table import open_parquet
from pruning.errors import SourceNotFoundError
from pruning.reasons import ReasonCode
from pruning.scan.statistics import UNKNOWN
from sample_data.confs import conf
from tests.connectors.parquet_tables import columns, in_files, numbered, opened, pruned, scanned

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["[a]", "{a,b}", "a*", "a?", "[a]{b}*"])
def test_existing_path_is_not_a_glob_pattern(spark, tmp_path, name):
    source = in_files(tmp_path / name, *numbered(0))
    in_files(tmp_path / "a", *numbered(0, 100))
    assert 1 == len(opened(spark, source).files([]))


def test_kinds_of_sources(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100, 200))
    for path in (source, source.as_uri(), tmp_path / "*" / "*.parquet", f"{source}/[012].parquet"):
        table = opened(spark, path)
        kept = pruned(table, {"id": [105]}).kept
        assert ([(id_, "v100") for id_ in range(100, 110)], 1, 10) == scanned(table.read(kept))
    alone = opened(spark, source / "1.parquet")
    assert ["{[100, 109]}"] == [str(alone.files(columns(alone, "id"))[0].domains["id"])]


def test_view_is_an_opaque_table(spark, tmp_path):
    source = in_files(tmp_path / "t", *numbered(0, 100))
    spark.read.parquet(str(source)).limit(3).createOrReplaceTempView("three")
    try:
        table = open_parquet(spark, "three")
        assert isinstance(table, OpaqueTable)
        assert [ReasonCode.STATISTICS_FAILED] == [each.code for each in table.problems]
        assert (UNKNOWN, False) == (table.files([]).rows[0], table.accepts_file_list)
        assert [0] == table.row_groups(np.array([0]), [], None).parents.tolist()
        assert 3 == table.read(np.array([False])).count()
    finally:
        spark.catalog.dropTempView("three")


def test_remote_files_are_read_through_spark(spark, tmp_path):
    in_files(tmp_path / "t é", *numbered(0, 100))
    authority = uuid.uuid4().hex
    with conf(spark, {f"fs.viewfs.mounttable.{authority}.link./data": tmp_path.as_uri()}):
        table = opened(spark, f"viewfs://{authority}/data/t é")
        kept = pruned(table, {"id": [105]}).kept
        assert ([(id_, "v100") for id_ in range(100, 110)], 1, 10) == scanned(table.read(kept))
        assert () == table.problems


def text_file(directory: Path) -> str:
    (directory / "a.parquet").write_text("id,v\n1,2\n")
    return str(directory / "a.parquet")


def empty_directory(directory: Path) -> str:
    return str(directory)


def other_files(directory: Path) -> str:
    (directory / "readme.txt").write_text("hello")
    return str(directory / "*.parquet")


def mixed_layouts(directory: Path) -> str:
    in_files(directory / "a=1", *numbered(0))
    in_files(directory / "b=1", *numbered(0))
    return str(directory)


MISTAKES = {
    "nothing there": (
        lambda directory: str(directory / "none"),
        r"No Parquet files at '.*none': there is no such path",
    ),
    "no such table": (lambda _: "no_such_table", r"No table 'no_such_table' in the catalog"),
    "no name": (lambda _: "x'; DROP TABLE t; --", 'No table "x\'; DROP TABLE t; --" in the catalog'),
    "no such scheme": (lambda _: "nowhere://x/y", "Cannot open 'nowhere://x/y' as Parquet: .*nowhere"),
    "pattern of no such scheme": (lambda _: "nowhere://x/*", "Cannot open 'nowhere://x/\\*' as Parquet: .*nowhere"),
    "text": (text_file, "Cannot open '.*a.parquet' as Parquet: .*is not a Parquet file"),
    "empty directory": (empty_directory, "No Parquet files in '.*': name a directory that holds some"),
    "no match": (other_files, "No Parquet files at"),
    "mixed layouts": (mixed_layouts, "Cannot open '.*' as Parquet: .*onflicting"),
}


@pytest.mark.parametrize(("make", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_source_errors_are_one_line_with_a_remedy(spark, tmp_path, make, message):
    with pytest.raises(SourceNotFoundError, match=message) as caught:
        open_parquet(spark, make(tmp_path))
    assert "\n" not in str(caught.value)
    assert "\tat " not in str(caught.value)
