"""Columns that storage orders otherwise than Spark compares them: every row is read, with a reason."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pruning import explain, pruned_read
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Lake
from tests.oracle.oracle import check_skips, skips

pytestmark = pytest.mark.spark

FILES = 4
# Two words per file. By bytes, every capital letter sorts below every small letter.
WORDS = ("A", "B", "C", "D", "a", "b", "c", "d")


@pytest.fixture(scope="module")
def collated(spark, tmp_path_factory):
    words = ", ".join(map(repr, WORDS))
    word = f"ELEMENT_AT(ARRAY({words}), CAST(id + 1 AS INT)) COLLATE UTF8_LCASE AS word"
    folder = tmp_path_factory.mktemp("collated") / "t"
    spark.range(0, len(WORDS), 1, FILES).selectExpr("id", word).write.parquet(str(folder))
    return Lake(spark, str(folder), "parquet")


# Failure catalogue 79, 80: under this collation, equality follows neither the order nor the hash of the bytes.
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("bloom", ["true", "false"])
def test_collated_column_is_not_pruned(spark, collated, exact, bloom):
    settings = {
        "spark.sql.optimizer.runtime.bloomFilter.enabled": bloom,
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    with conf(spark, settings):
        read = pruned_read(spark, collated.source, keys={"word": ["a", "C"]}, exact=exact)
        found = {row.id for row in read.collect()}
        check_skips(read, skips((FILES, FILES), (FILES, FILES), ReasonCode.COLLATED))
    assert found == ({0, 2, 4, 6} if exact else set(range(len(WORDS))))


def test_other_column_of_a_collated_table_skips(spark, collated):
    read = pruned_read(spark, collated.source, keys={"word": ["a", "C"], "id": [2, 5]}, exact=True)
    assert [(2, "C")] == [tuple(row) for row in read.collect()]
    (plan,) = explain(read).tables
    assert (2, 2) == (plan.files_kept, plan.row_groups_kept)


# Failure catalogue 76, 87: stored values may be padded, and values that are read always are.
@pytest.mark.parametrize(
    "keys", [["ab", "I"], ["ab  ", "I   ", "zz  "], ["wide", None]], ids=["bare", "padded", "full width"]
)
def test_char_column_is_not_pruned(oracle, spark, tmp_path, keys):
    folder = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{folder}` (id BIGINT, code CHAR(4)) USING delta")
    for at, code in enumerate(("ab", "I", "wide", "P")):
        spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({at}, '{code}')")
    lake = Lake(spark, str(folder), "delta")
    oracle.check(lake, Keys.of("code", pa.array(keys)), expected=skips((4, 4), (4, 4), ReasonCode.CHAR_PADDED))
