"""Pages, dictionaries and bloom filters of Parquet, by which Spark's own reader skips inside row groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from pruning import pruned_read, report
from pruning.reasons import ReasonCode
from sample_data.confs import conf
from tests.connectors.hand_made import Struct, chunk, edit_footer
from tests.oracle.answers import Keys
from tests.oracle.lakes import Lake, Layout, data_files, write
from tests.oracle.oracle import row_tests, skips

pytestmark = pytest.mark.spark

ROWS, GROUP = 240, 60
LAYOUT = Layout(file_rows=ROWS, group_rows=GROUP)
# Pages of a few values. The number of values depends on their size, so pages of two columns end at different rows.
SMALL_PAGES = {
    "parquet.page.size": "64",
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "1",
    "parquet.enable.dictionary": "false",
}


def paged() -> pa.Table:
    """Row groups with equal bounds, each sorted; payloads distinguish every row."""
    places = [at % GROUP for at in range(ROWS)]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "up": pa.array(places, pa.int64()),
            # Descending in the first and last row group, where pages of equal values in `up` and `down` are disjoint.
            "down": pa.array(
                [GROUP - 1 - place if at // GROUP in {0, 3} else place for at, place in enumerate(places)], pa.int32()
            ),
            "payload": [f"{at}:" + "x" * (at * 7 % 23) for at in range(ROWS)],
            "gaps": pa.array([None if at % 3 == 0 else at * 1000 for at in range(ROWS)], pa.int64()),
        }
    )


@pytest.fixture(params=["delta", "parquet"])
def pages(request, shared_lake):
    return shared_lake("pages", request.param, paged, LAYOUT, confs=SMALL_PAGES)


def scanned(lake: Lake, **keys) -> int:
    read = pruned_read(lake.spark, lake.source, keys=keys, exact=True)
    read.collect()
    return report(read).measured.rows_scanned


def test_unaligned_pages_return_the_right_rows(oracle, pages):
    keys = Keys.of("up", pa.array([7, 33, 59], pa.int64()))
    oracle.check(pages, keys, expected=skips((1, 1), (4, 4), ReasonCode.UNCLUSTERED, pages=True))
    assert 12 <= scanned(pages, up=[7, 33, 59]) < ROWS / 2


# Failure catalogue 135: the row-based reader returns a value of another row from these pages
# (apache/parquet-java#3747).
@pytest.mark.parametrize("setting", ["vectorised", "struct"])
def test_row_based_reader_gets_no_predicate(oracle, spark, shared_lake, pages, setting):
    keys = Keys.of("up", pa.array([7, 33, 59], pa.int64()))
    if setting == "vectorised":
        settings, lake = {"spark.sql.parquet.enableVectorizedReader": "false"}, pages
    else:
        settings = {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"}
        lake = shared_lake("pages_of_structs", pages.format, of_structs, LAYOUT, confs=SMALL_PAGES)
    with conf(spark, settings):
        plan = oracle.check(lake, keys, expected=skips((1, 1), (4, 4), ReasonCode.NOT_VECTORISED))
        assert {"semi join"} == set(row_tests(plan))
        assert ROWS == scanned(lake, up=[7, 33, 59])


def of_structs() -> pa.Table:
    rows = paged()
    pairs = [
        {"text": text, "gap": gap}
        for text, gap in zip(*(rows[n].to_pylist() for n in ("payload", "gaps")), strict=True)
    ]
    return rows.select(["id", "up"]).append_column("pair", pa.array(pairs))


# Failure catalogue 136, 137: the first row group has no page with both keys, but later row groups may have one.
@pytest.mark.parametrize("key", [5, 29, 54])
def test_disjoint_pages_do_not_skip_later_row_groups(oracle, pages, key):
    entries = (Keys.of("up", pa.array([key], pa.int64())), Keys.of("down", pa.array([key], pa.int32())))
    oracle.check(pages, *entries, expected=skips((1, 1), (4, 4), ReasonCode.UNCLUSTERED, pages=True))
    answer = oracle.answer(pages, entries)
    assert 2 == len(answer.matching)
    assert scanned(pages, up=[key], down=[key]) <= GROUP


# Failure catalogue 139: a page of NULL has no bounds.
def test_pages_that_begin_with_null(oracle, pages):
    keys = Keys.of("gaps", pa.array([1000, 61_000, 239_000, 3000], pa.int64()))
    oracle.check(pages, keys, expected=skips((1, 1), (3, 4), pages=True))


SCATTERED = 200


def scattered() -> pa.Table:
    """Files that each span all values and have every other value."""
    values = [(at * 37 % SCATTERED) * 10 for at in range(SCATTERED)]
    return pa.table(
        {
            "id": pa.array(range(SCATTERED), pa.int64()),
            "whole": pa.array(values, pa.int32()),
            "long": pa.array([value << 20 for value in values], pa.int64()),
            "word": [f"w{value:05}" for value in values],
            "price": pa.array(values, pa.int64()).cast(pa.decimal128(20, 0)).cast(pa.decimal128(20, 2), safe=False),
            "raw": pa.array([f"w{value:05}".encode() for value in values], pa.binary()),
        }
    )


BLOOMS = {"parquet.bloom.filter.enabled": "true", "parquet.enable.dictionary": "false"}
BLOOM_KEYS: Mapping[str, tuple[pa.DataType, list]] = {
    "whole": (pa.int32(), [370, 375, 1205]),
    "long": (pa.int64(), [370 << 20, 375 << 20, 1 << 40]),
    "word": (pa.string(), ["w00370", "w00375", "w01205"]),
    "price": (pa.decimal128(20, 2), [370, 375, 1205]),
    "raw": (pa.binary(), [b"w00370", b"w00375", b"w01205"]),
}


def without_lengths(path: Path) -> None:
    """Removes the lengths of bloom filters, as in files of older writers."""

    def edit(metadata: Struct) -> None:
        groups = metadata[4][1][1]
        for group, found in enumerate(groups):
            for column in range(len(found[1][1][1])):
                assert chunk(metadata, column, group).pop(15, None) is not None

    edit_footer(path, edit)


@pytest.fixture(scope="module", params=["as written", "without lengths"])
def blooms(request, spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("blooms") / "t"
    lake = write(spark, folder, "parquet", scattered(), Layout(file_rows=50, group_rows=25), confs=BLOOMS)
    if request.param == "without lengths":
        for path in data_files(lake):
            without_lengths(path)
            path.with_name(f".{path.name}.crc").unlink()
    return lake


# Failure catalogue 86, 142, 143, 180: keys reach files as ranges, for which their reader asks no bloom filter.
@pytest.mark.parametrize("column", BLOOM_KEYS)
def test_bloom_filters_of_files_are_not_asked(oracle, blooms, column):
    type_, values = BLOOM_KEYS[column]
    plan = oracle.check(
        blooms,
        Keys.of(column, pa.array(values, type_)),
        expected=skips((4, 4), (8, 8), ReasonCode.UNCLUSTERED, pages=True),
    )
    assert ("IN list",) == row_tests(plan)
    # By its bloom filters, only one row group has the existing key.
    assert scanned(blooms, **{column: values}) == SCATTERED


# Failure catalogue 142: bloom filters of another writer. Dictionaries are asked in files without any.
@pytest.mark.parametrize("has_blooms", [True, False])
def test_dictionaries_of_duckdb_are_asked_for_values_beside_no_bloom_filter(oracle, spark, tmp_path, has_blooms):
    folder = tmp_path / "t"
    folder.mkdir()
    with duckdb.connect() as writer:
        writer.register("rows_arrow", scattered().drop_columns(["price"]))
        for at in range(4):
            target = folder / f"{at}.parquet"
            writer.execute(
                f"COPY (SELECT * FROM rows_arrow WHERE id // 50 = {at} ORDER BY id) TO '{target}' "
                f"(FORMAT parquet, DICTIONARY_SIZE_LIMIT 1000, WRITE_BLOOM_FILTER {has_blooms})"
            )
    lake = Lake(spark, str(folder), "parquet")
    for column in ("whole", "long", "word", "raw"):
        type_, values = BLOOM_KEYS[column]
        oracle.check(
            lake,
            Keys.of(column, pa.array(values, type_)),
            expected=skips((4, 4), (4, 4), ReasonCode.UNCLUSTERED, pages=True),
        )
        # By their dictionaries, only one file has the existing key.
        assert scanned(lake, **{column: values}) == (SCATTERED if has_blooms else 50)
