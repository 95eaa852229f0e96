"""Broken storage and hostile arguments give a clear error, or all rows with a reason, but never fewer rows."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pruning import PruningOptions, explain, pruned_read, report
from pruning.errors import InvalidKeysError, PruningError
from pruning.keys.builder import KeyBuilder
from pruning.keys.key_set import KeyLimits
from pruning.reasons import ReasonCode
from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.oracle.answers import Keys
from tests.oracle.lakes import Lake, Layout, copied, data_files
from tests.oracle.oracle import check_rows, reason_codes, skips

pytestmark = pytest.mark.spark

LAYOUT = Layout(file_rows=10, group_rows=5)
KEYS = Keys.of("k", pa.array([0, 70, 210, 390], pa.int64()))


def rows() -> pa.Table:
    return pa.table(
        {
            "id": range(40),
            "k": pa.array([at * 10 for at in range(40)], pa.int64()),
            "text": [f"t{at}" for at in range(40)],
            "real": [at / 2 for at in range(40)],
        }
    )


@pytest.fixture(params=["delta", "parquet"])
def lake(request, shared_lake):
    return shared_lake("bad_input", request.param, rows, LAYOUT)


# Failure catalogue 68 - 72, 119, 120: broken statistics must not be trusted.
Change = Callable[[dict[str, Any]], Any]
# Contradictory counts are left out, because Delta itself skips such a file by `IS NOT NULL`.
BROKEN: Mapping[str, Change] = {
    "no JSON": lambda _: "{no JSON",
    "cut off": lambda stats: json.dumps(stats)[:40],
    "empty": lambda _: "",
    "absent": lambda _: None,
    "no object": lambda _: "[1, 2]",
    "text for a number": lambda stats: {**stats, "minValues": {"k": "x"}, "maxValues": {"k": "y"}},
    "number too large": lambda stats: {**stats, "maxValues": {**stats["maxValues"], "k": 1e30}},
    "no maximum": lambda stats: {**stats, "maxValues": {}},
    "no minimum": lambda stats: {**stats, "minValues": {}},
    "fewer NULL than none": lambda stats: {**stats, "nullCount": dict.fromkeys(stats["nullCount"], -1)},
    "no counts": lambda stats: {key: stats[key] for key in ("minValues", "maxValues")},
}


def with_statistics(lake: Lake, change: Change) -> None:
    """Replaces the statistics of every other file in the log by those that `change` returns for them."""
    log = Path(lake.source) / "_delta_log" / ("0" * 20 + ".json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in [each["add"] for each in actions if "add" in each][::2]:
        changed = change(json.loads(action["stats"]))
        if changed is None:
            del action["stats"]
        else:
            action["stats"] = changed if isinstance(changed, str) else json.dumps(changed)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
    log.with_suffix(".crc").unlink(missing_ok=True)


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_statistics_lose_no_row(oracle, shared_lake, tmp_path, broken):
    lake = copied(shared_lake("bad_input", "delta", rows, LAYOUT), tmp_path / "t")
    with_statistics(lake, BROKEN[broken])
    for keys in (KEYS, Keys.of("k", pa.array([70], pa.int64()))):
        answer = oracle.answer(lake, [keys])
        for exact in (False, True):
            read = pruned_read(lake.spark, lake.source, keys=dict([keys.entry]), exact=exact)
            check_rows(read, answer, exact=exact)
    # Files with sound statistics are still skipped.
    (plan,) = explain(read).tables
    assert (True, 4) == (plan.files_kept <= 3, plan.files_total)


# Delta keeps a file that lacks any statistic that a predicate needs.
@pytest.mark.parametrize("broken", ["number too large", "no maximum", "no counts"])
def test_files_with_partial_statistics_are_planned_as_read(shared_lake, tmp_path, broken):
    lake = copied(shared_lake("bad_input", "delta", rows, LAYOUT), tmp_path / "t")
    with_statistics(lake, BROKEN[broken])
    read = pruned_read(lake.spark, lake.source, keys={"k": [70]}, exact=True)
    assert 1 == read.count()
    assert report(read).measured.files_read == explain(read).tables[0].files_kept


@pytest.mark.parametrize("cut", ["text", "half", "no footer"])
def test_corrupt_file_fails_only_a_read_that_needs_it(oracle, spark, shared_lake, tmp_path, cut):
    lake = copied(shared_lake("bad_input", "parquet", rows, LAYOUT), tmp_path / "t")
    victim = data_files(lake)[-1]
    whole = victim.read_bytes()
    victim.write_bytes({"text": b"hello" * 50, "half": whole[: len(whole) // 2], "no footer": whole[:-8]}[cut])
    read = pruned_read(spark, lake.source, keys=dict([KEYS.entry]))
    (plan,) = explain(read).tables
    assert ReasonCode.STATISTICS_FAILED in reason_codes(plan)
    with pytest.raises((PySparkException, Py4JError)) as caught:
        read.collect()
    assert victim.name in str(caught.value)
    with conf(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        oracle.check(lake, KEYS)


@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_missing_file_fails_only_a_read_that_needs_it(oracle, spark, shared_lake, tmp_path, format_):
    lake = copied(shared_lake("bad_input", format_, rows, LAYOUT), tmp_path / "t")
    answer = oracle.answer(lake, [Keys.of("k", pa.array([0, 70], pa.int64()))])
    victim = data_files(lake)[-1]

    def keys():
        yield 0
        victim.unlink()
        yield 70

    missing = r"(?i)does not exist|FAILED_READ_FILE"
    read = pruned_read(spark, lake.source, keys={"k": keys()}, exact=True)
    if format_ == "delta":
        assert len(answer.matching) == read.count() == 2
        read = pruned_read(spark, lake.source, keys={"k": [390]})
    # Without a footer, the content of a Parquet file is unknown, so the file is needed.
    with pytest.raises((PySparkException, Py4JError), match=missing):
        read.collect()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", "empty|No |Cannot"),
        (" ", "No |Cannot"),
        ("/no/such/folder", "no such path|No Delta table"),
        ("../../no/../such", "no such path|No "),
        ("no_such.table", "no_such.table"),
        ("a b; DROP TABLE t", "DROP TABLE"),
        ("'; --", "No "),
        ("`", "No |Cannot"),
        ("x\ny", "No |Cannot"),
        ("weird://host/path", "weird"),
        ("/no/\x00", "No |Cannot"),
    ],
)
@pytest.mark.parametrize("format_", [None, "delta", "parquet"], ids=str)
def test_invalid_sources(spark, source, found, format_):
    with pytest.raises(PruningError, match=found) as caught:
        pruned_read(spark, source, keys={"id": [1]}, format=format_)
    assert "\n" not in str(caught.value).replace(source, "")
    assert "py4j" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "a.", ".a", "`k", "k`", "k.x", "id; DROP TABLE t", "k\n", "1=1", "*", "lower(text)", "`k`.`x`"]
)
def test_invalid_column_names(spark, lake, name):
    for arguments in (
        {"keys": {name: [1]}},
        {"keys": {"k": [1]}, "columns": [name]},
        {"keys": {("k", name): [(1, 1)]}},
    ):
        with pytest.raises(PruningError) as caught:
            pruned_read(spark, lake.source, **arguments)
        assert repr(name)[1:-1] in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"keys": None},
        {"keys": {("k", 5): [(1, 1)]}},
        {"keys": {"k": None}},
        {"keys": {"k": object()}},
        {"keys": {"k": {"a": 1}}},
        {"keys": {"k": [[1, 2]]}},
        {"keys": {"k": [object()]}},
        {"keys": {"k": [1, "2"]}},
        {"keys": {"k": [b"1"]}},
        {"keys": {"k": [1j]}},
        {"keys": {"k": np.zeros((2, 2))}},
        {"keys": {"k": np.array([1j])}},
        {"keys": {"k": pd.DataFrame({"a": [1], "b": [2]})}},
        {"keys": {"k": pa.table({"a": [1], "b": [2]})}},
        {"keys": {"k": pa.array([[1]])}},
        {"keys": {"text": [1]}},
        {"keys": {"text": [True]}},
        {"keys": {"k": [1]}, "columns": "text"},
        {"keys": {"k": [1]}, "format": "csv"},
        {"keys": {"k": [1]}, "version": -1},
    ],
    ids=lambda each: re.sub(r" at 0x\w+", "", repr(each)),
)
def test_invalid_arguments(spark, lake, arguments):
    with pytest.raises((PruningError, TypeError)) as caught:
        pruned_read(spark, lake.source, **arguments)
    assert "expected" in str(caught.value) or "No column" in str(caught.value)


def test_invalid_timestamp(spark, shared_lake):
    lake = shared_lake("bad_input", "delta", rows, LAYOUT)
    with pytest.raises(PruningError, match=r"'yesterday'.*cannot be converted"):
        pruned_read(spark, lake.source, keys={"k": [1]}, timestamp="yesterday")


@pytest.mark.parametrize(
    "arguments",
    [
        {"keys": {None: [1]}},
        {"keys": {1: [1]}},
        {"keys": {"k": [1]}, "columns": [None]},
        {"keys": {"k": [1]}, "columns": 5},
        {"keys": {"k": [1]}, "options": {"top_k": True}},
        {"keys": {"k": [1]}, "version": "latest"},
    ],
    ids=repr,
)
def test_arguments_of_wrong_type(spark, shared_lake, arguments):
    lake = shared_lake("bad_input", "delta", rows, LAYOUT)
    with pytest.raises((PruningError, TypeError), match="expected"):
        pruned_read(spark, lake.source, **arguments)


def test_summary_of_other_key_types_is_refused(spark, lake):
    def summary(*types: str):
        builder = KeyBuilder([ValueType.parse(each) for each in types], KeyLimits.of(PruningOptions()))
        builder.close(0)
        return builder.finish(1, source="nothing")

    with pytest.raises(InvalidKeysError, match="found 2 columns, expected 1"):
        pruned_read(spark, lake.source, keys={"k": summary("bigint", "bigint")})
    with pytest.raises(InvalidKeysError, match="string"):
        pruned_read(spark, lake.source, keys={"k": summary("string")})


# A key that no value of the column can equal is dropped, without effect on other keys.
SHAPES: Mapping[str, tuple[str, Callable[[], Any], pa.Array]] = {
    "too large": ("k", lambda: [70, 2**63, -(2**70), 10**30], pa.array([70])),
    "fractions": ("k", lambda: [70.0, 0.5, float("nan"), float("inf"), 1e300], pa.array([70.0])),
    "decimals": ("k", lambda: [Decimal("70.00"), Decimal("70.5"), Decimal("1e20")], pa.array([70])),
    "unsigned": ("k", lambda: np.array([70, 71], np.uint64), pa.array([70])),
    "series with a gap": ("k", lambda: pd.Series([70, None, 390]), pa.array([70, 390])),
    "masked": ("k", lambda: pd.array([70, pd.NA], dtype="Int64"), pa.array([70])),
    "range": ("k", lambda: range(65, 10**6, 5), pa.array(range(65, 400, 5))),
    "set": ("k", lambda: {70, 390}, pa.array([70, 390])),
    "generator": ("k", lambda: (key for key in (70, 390)), pa.array([70, 390])),
    "tuples of one": ("k", lambda: [(70,), (390,)], pa.array([70, 390])),
    "chunks": ("k", lambda: pa.chunked_array([[70], [], [None, 390]]), pa.array([70, 390])),
    "dictionary": ("k", lambda: pa.array([70, 390]).dictionary_encode(), pa.array([70, 390])),
    "words of numpy": ("text", lambda: np.array(["t7", "t39"]), pa.array(["t7", "t39"])),
    "categories": ("text", lambda: pd.Series(["t7", None, "t39"], dtype="category"), pa.array(["t7", "t39"])),
    "large strings": ("text", lambda: pa.array(["t7"], pa.large_string()), pa.array(["t7"])),
    "numbers of several kinds": ("real", lambda: [3, 3.5, np.float32(4.5)], pa.array([3.0, 3.5, 4.5])),
    "half precision": ("real", lambda: np.array([3.5], np.float16), pa.array([3.5])),
}


# The format does not matter, because keys are converted to one form first.
@pytest.mark.parametrize("shape", SHAPES)
def test_keys_of_many_python_types(oracle, shared_lake, shape):
    column, given, typed = SHAPES[shape]
    lake = shared_lake("bad_input", "delta", rows, LAYOUT)
    oracle.check(lake, Keys.of(column, typed, given=given()), exact=[True])


def test_key_values_are_shortened_even_in_debug_logs(spark, lake, caplog):
    secret = "secret-" + "4711" * 50
    with caplog.at_level(logging.DEBUG):
        pruned_read(spark, lake.source, keys={"text": [secret, "t7"]}, exact=True).collect()
        pruned_read(
            spark, lake.source, keys={"text": [secret] * 3}, options=PruningOptions().with_limits(max_build_keys=1)
        ).collect()
    assert secret not in caplog.text
    with caplog.at_level(logging.INFO):
        caplog.clear()
        pruned_read(spark, lake.source, keys={"text": [secret, "t7"]}).collect()
        assert "4711" not in caplog.text


def test_refusals_give_one_warning(spark, lake, caplog):
    with caplog.at_level(logging.WARNING, "scanprune"):
        pruned_read(spark, lake.source, keys={"k": [70]})
        assert [] == caplog.records
        pruned_read(spark, lake.source, keys={"k": range(400)})
        assert [] == caplog.records
        with conf(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
            pruned_read(spark, lake.source, keys={"k": [70], "id": [7], "text": ["t7"]})
    assert 1 == len(caplog.records)
    assert lake.source in caplog.text


def test_empty_key_set_reads_nothing_beside_other_keys(oracle, lake):
    entries = (Keys.of("k", pa.array([None], pa.int64())), Keys.of("text", pa.array(["t7"])))
    oracle.check(lake, *entries, expected=skips((0, 4), (0, 8)))
