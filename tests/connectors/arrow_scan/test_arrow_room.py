"""`most_bytes`: the estimated memory of a scan by pyarrow."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq

from connectors.arrow_scan.workers import Workers, most_bytes, too_large
from pruning.keys.membership import MembershipTest
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from tests.connectors.arrow_scan.test_partition import stored

BIGINT = ValueType("bigint")


def test_task_memory_is_largest_row_group_keys_and_overhead(tmp_path):
    file, nothing = stored(tmp_path / "t.parquet"), most_bytes([], [])
    groups = [pq.read_metadata(tmp_path / "t.parquet").row_group(at) for at in range(4)]
    chunks = [
        sum(each.column(leaf).total_compressed_size + each.column(leaf).total_uncompressed_size for leaf in (0, 1))
        for each in groups
    ]
    assert 1 << 30 < nothing < 2 << 30
    assert max(chunks) > max(chunks[:2])
    assert nothing + max(chunks) + 16 * 10 == most_bytes([(file, [3, 0, 1, 2])], [])
    assert nothing + max(chunks[:2]) + 16 * 10 == most_bytes([(file, [0, 1])], [])
    rows = MembershipTest.of(Domain.of(BIGINT, *range(0, 3000, 3)))
    assert nothing + 3 * rows.nbytes == most_bytes([], [rows])
    assert 2998 <= rows.nbytes < 4000


def test_object_store_files_add_memory_for_threads(tmp_path):
    file = stored(tmp_path / "t.parquet")
    file = replace(file, uri="s3a://lake/t.parquet")
    assert most_bytes([], []) + (512 << 20) == most_bytes([(file, [])], [])


def test_refusal_names_needed_and_available_memory():
    assert (None, None) == (too_large(5 << 40, Workers()), too_large(5, Workers(room=5)))
    assert "a task may take 6 B, and spark.executor.pyspark.memory leaves 5 B" in str(too_large(6, Workers(room=5)))
