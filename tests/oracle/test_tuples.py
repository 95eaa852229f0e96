"""Keys of two columns over tables sorted by both: containers without a pair are skipped, and no row is lost."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pruning import explain, pruned_read
from pruning.reasons import ReasonCode
from tests.oracle.answers import Keys
from tests.oracle.lakes import Layout, write
from tests.oracle.oracle import row_tests, skips

pytestmark = pytest.mark.spark

FILES, GROUPS = 8, 32
LAYOUT = Layout(file_rows=100, group_rows=25)
# Each shop numbers its orders from 1: shop 0 has 50 orders, shops 1 to 7 have 100 each, shop 8 has 50.
COUNTS = [50, *[100] * 7, 50]


def orders() -> pa.Table:
    shops = np.repeat(np.arange(9), COUNTS)
    numbers = np.concatenate([np.arange(1, count + 1) for count in COUNTS])
    return pa.table(
        {
            "id": pa.array(range(800), pa.int64()),
            "shop": pa.array(shops, pa.int64()),
            "number": pa.array([None if at % 100 == 99 else int(each) for at, each in enumerate(numbers)], pa.int32()),
            "day": pa.array([dt.date(1969, 12, 1) + dt.timedelta(days=int(each)) for each in numbers]),
            "text": pa.array([f"\U0001f600{each:03}" for each in numbers]),
        }
    )


@pytest.fixture(params=["delta", "parquet"])
def lake(request, shared_lake):
    return shared_lake("orders", request.param, orders, LAYOUT)


def pairs(column, *keys):
    shops, values = zip(*keys, strict=True)
    type_ = {"number": pa.int32(), "day": pa.date32(), "text": pa.string()}[column]
    return Keys.of(("shop", column), pa.array(shops, pa.int64()), pa.array(values, type_))


# All files but the last have one of these shops, and all have one of these numbers. Files 0, 3 and 6 have a pair.
PAIRS = ((1, 5), (3, 95), (4, 20), (6, 60))


def test_row_groups_between_pairs_are_skipped(oracle, lake):
    # Delta's files are skipped only by a predicate, and the bounds of most files span two shops with all numbers.
    files = FILES - 1 if lake.format == "delta" else 3
    plan = oracle.check(lake, pairs("number", *PAIRS), expected=skips((files, FILES), (4, GROUPS)))
    assert ("semi join",) == row_tests(plan)


def test_pairs_with_dates_are_skipped(oracle, lake):
    days = [(shop, dt.date(1969, 12, 1) + dt.timedelta(days=number)) for shop, number in PAIRS]
    files = FILES - 1 if lake.format == "delta" else 3
    oracle.check(lake, pairs("day", *days), expected=skips((files, FILES), (4, GROUPS)))


def test_pairs_with_strings_are_skipped_by_file_list(oracle, lake):
    texts = [(shop, f"\U0001f600{number:03}") for shop, number in PAIRS]
    # Shops and strings are tested separately, which keeps one more row group of shop 3 and of shop 6.
    files, groups = (FILES - 1, 12) if lake.format == "delta" else (3, 6)
    oracle.check(lake, pairs("text", *texts), expected=skips((files, FILES), (groups, GROUPS)))


@pytest.mark.parametrize("partition", ["shop", "number"])
@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_pair_of_a_partition_and_a_data_column(oracle, shared_lake, format_, partition):
    # Spark pushes no condition on both columns to the Parquet reader, so planned and read counts must agree.
    few = [(shop, number) for shop in (1, 3) for number in (5, 6)]
    rows = orders().filter(pc.is_in(orders()["number"], pa.array([5, 6, 7], pa.int32())))
    layout = Layout(file_rows=9, group_rows=3, partition_by=(partition,))
    lake = shared_lake(f"orders by {partition}", format_, lambda: rows, layout)
    oracle.check(lake, pairs("number", *few[:2], (3, 7)))


def test_more_gaps_than_ranges(oracle, lake):
    many = [(shop, number) for shop in range(9) for number in ((7, 60) if shop % 2 else (33, 95))]
    plan = oracle.check(lake, pairs("number", *many))
    assert {"shop, number": 8} == {name: count for name, count in plan.filters[0].ranges.items() if "," in name}
    # All shops but the first and the last have two row groups with a pair, and the numbers alone keep all row groups.
    wanted = 2 * 7 + 2
    assert wanted < plan.row_groups_kept < GROUPS


def test_absent_pairs(oracle, lake):
    # Numbers of some shop, and existing shops.
    none = [(0, 60), (8, 99)]
    files = 1 if lake.format == "delta" else 0
    oracle.check(lake, pairs("number", *none), expected=skips((files, FILES), (0, GROUPS)))


def test_pairs_of_other_types(oracle, lake):
    shops, numbers = zip(*PAIRS, strict=True)
    wider = Keys.of(("shop", "number"), pa.array(shops, pa.int32()), pa.array([*numbers[:3], 60], pa.int64()))
    oracle.check(lake, wider, expected=skips((FILES - 1 if lake.format == "delta" else 3, FILES), (4, GROUPS)))
    beyond = Keys.of(("shop", "number"), pa.array([1, 1, 1]), pa.array([5, 1 << 40, -(1 << 63)], pa.int64()))
    oracle.check(lake, beyond, expected=skips((2 if lake.format == "delta" else 1, FILES), (1, GROUPS)))
    decimals = Keys.of(("shop", "number"), pa.array(shops), pa.array(numbers, pa.int32()).cast(pa.decimal128(12, 0)))
    plan = oracle.check(lake, decimals)
    assert ReasonCode.COLUMNS_APART in {each.code for each in plan.filters[0].reasons}


def test_extreme_values_and_hostile_names(spark, oracle, tmp_path):
    least, most = -(1 << 63), (1 << 63) - 1
    rows = pa.table(
        {
            "id": pa.array(range(60), pa.int64()),
            "a `b`.C": pa.array([least] * 20 + [0] * 20 + [most] * 20, pa.int64()),
            "Ä\U0001f600": pa.array([least, *range(18), most] * 3, pa.int64()),
        }
    )
    written = write(spark, tmp_path / "t", "parquet", rows, Layout(file_rows=20, group_rows=5))
    keys = [(least, least), (0, 7), (most, most)]
    arrays = (pa.array([each[at] for each in keys], pa.int64()) for at in range(2))
    oracle.check(written, Keys.of(("`a ``b``.C`", "Ä\U0001f600"), *arrays), expected=skips((3, 3), (3, 12)))


def test_explanation_names_columns_of_a_pair(spark, lake):
    df = pruned_read(spark, lake.source, keys={("shop", "number"): [(1, 5), (3, 95), (4, 20), (6, 60)]})
    (table,) = explain(df).tables
    assert table.filters[0].ranges["shop, number"] > 0
    df.count()
