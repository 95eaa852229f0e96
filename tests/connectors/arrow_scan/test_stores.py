"""Reads of Python workers from an object store: only the needed chunks, and only of the listed object."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.arrow_scan import files as arrow_files
from connectors.arrow_scan.files import FilePart, open_file
from connectors.arrow_scan.reader import ArrowReader, KeyTest, ReadColumn
from connectors.arrow_scan.s3 import S3Access
from pruning.keys.membership import MembershipTest
from pruning.limits import Limits
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from sample_data.object_store.store import ObjectStore

INT, TEXT, ROWS, PER_GROUP = ValueType("int"), ValueType("string"), 1000, 100
NAME = "a b/p=ä%25/facts #1.parquet"
COLUMNS = [ReadColumn("day", pa.int32()), ReadColumn("item", pa.int32()), ReadColumn("note", pa.string())]
# `item` is spread over all rows: the key column is needed of all row groups, other columns of two.
TESTS = [KeyTest(0, INT, MembershipTest.of(Domain.of(INT, 3, 55)))]


def facts(seed: int = 0) -> pa.Table:
    numbers = np.arange(ROWS)
    notes = [f"{at:013}" for at in np.random.default_rng(seed).integers(0, 1 << 40, ROWS)]
    return pa.table(
        {"day": pa.array(numbers // 10, pa.int32()), "item": pa.array(numbers % 50, pa.int32()), "note": notes}
    )


def put(store: ObjectStore, name: str, table: pa.Table) -> FilePart:
    """Writes a file with a row group per ten days; returns it as listed, with its footer."""
    key, files = f"{store.bucket}/{name}", store.filesystem()
    pq.write_table(table, key, filesystem=files, row_group_size=PER_GROUP, compression="none")
    found = files.get_file_info(key)
    uri = f"s3a://{store.bucket}/" + name.replace("%", "%25").replace(" ", "%20").replace("#", "%23")
    groups = tuple(range(-(-len(table) // PER_GROUP)))
    modified = int(found.mtime.timestamp() * 1000)
    with files.open_input_file(key) as opened:
        length = int.from_bytes(opened.read_at(4, found.size - 8), "little") + 8
        footer = b"PAR1" + opened.read_at(length, found.size - length)
    return FilePart(uri, groups, (0, 1, 2), (None,) * 3, found.size, modified, footer)


@pytest.fixture(scope="module")
def part(store) -> FilePart:
    return put(store, NAME, facts())


@pytest.fixture(scope="module")
def stores(store) -> dict[str, S3Access]:
    scheme, _, host = store.endpoint.partition("://")
    keys = {"access_key": store.access_key, "secret_key": store.secret_key}
    return {store.bucket: S3Access(store.access.region, scheme, host, **keys)}


def chunk_sizes(part: FilePart) -> np.ndarray:
    """Compressed bytes by row group and leaf."""
    metadata = pq.read_metadata(pa.BufferReader(part.footer))
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return np.array([[each.column(at).total_compressed_size for at in range(3)] for each in groups])


def days(reader: ArrowReader, part: FilePart) -> list[int]:
    return [day for batch in reader.read(part) for day in batch.column(0).to_pylist()]


@pytest.mark.parametrize("is_replaceable", [True, False])
def test_store_serves_only_needed_chunks(store, stores, part, is_replaceable):
    wanted = part if is_replaceable else replace(part, modified=None)
    store.reset()
    reader = ArrowReader(COLUMNS, TESTS, stores)
    assert [3] * 10 + [55] * 10 == days(reader, wanted)
    sizes = chunk_sizes(part)
    assert sizes[:, 0].sum() + sizes[[0, 5], 1:].sum() == reader.counts.bytes == store.counts().bytes
    # One request opens the file, one reads each key column, and one each pair of adjacent columns. For a file that may
    # be replaced, one precedes the rows of each row group, and one follows the last.
    assert 1 + 10 + 2 + (2 + 1) * is_replaceable == store.counts().requests


def test_columns_apart_are_separate_requests(store, stores, part):
    reader = ArrowReader([COLUMNS[0], COLUMNS[2]], [], stores)
    store.reset()
    batches = list(reader.read(replace(part, row_groups=(4,), leaves=(0, 2), constants=(None,) * 2, modified=None)))
    assert facts().slice(400, 100).select(["day", "note"]).to_pylist() == pa.Table.from_batches(batches).to_pylist()
    assert chunk_sizes(part)[4, [0, 2]].sum() == reader.counts.bytes == store.counts().bytes
    assert 3 == store.counts().requests


def test_large_neighbours_are_concurrent_requests(store, stores, part):
    reader = ArrowReader(COLUMNS, [], stores, Limits(store_request_bytes=int(chunk_sizes(part)[4, :2].sum())))
    store.reset()
    batches = list(reader.read(replace(part, row_groups=(4,), modified=None)))
    assert facts().slice(400, 100).to_pylist() == pa.Table.from_batches(batches).to_pylist()
    assert (chunk_sizes(part)[4].sum(), 3) == (store.counts().bytes, store.counts().requests)


@pytest.mark.parametrize(("most_bytes", "at_once"), [(8 << 20, 8), (1, 1)])
def test_key_columns_of_next_row_groups_are_prefetched(store, stores, part, monkeypatch, most_bytes, at_once):
    """Prefetching is limited in requests and bytes; every prefetched chunk is needed."""
    announce, known = arrow_files._StoredObject.announce, []

    def and_count(self, coming):
        announce(self, coming)
        known.append(len(self._ahead))

    monkeypatch.setattr(arrow_files._StoredObject, "announce", and_count)
    store.reset()
    tests, limits = [KeyTest(0, INT, MembershipTest.of(Domain.of(INT, 1000)))], Limits(store_request_bytes=most_bytes)
    reader = ArrowReader(COLUMNS, tests, stores, limits)
    assert [] == days(reader, replace(part, modified=None))
    assert [min(at_once, 10 - at) for at in range(10)] == known
    assert chunk_sizes(part)[:, 0].sum() == reader.counts.bytes == store.counts().bytes
    assert 1 + 10 == store.counts().requests


def test_unneeded_prefetches_are_counted(store, stores, part):
    """Days drop all rows at first and none later, when the other key test is first: chunks of days were
    prefetched by then.
    """
    note = Domain.of(TEXT, facts()["note"][500].as_py())
    tests = [
        KeyTest(0, INT, MembershipTest.of(Domain.of(INT, *range(50, 100)))),
        KeyTest(2, TEXT, MembershipTest.of(note)),
    ]
    store.reset()
    reader = ArrowReader(COLUMNS, tests, stores)
    assert [50] == days(reader, replace(part, modified=None))
    sizes = chunk_sizes(part)
    expected = sizes[:, 0].sum() + sizes[5:, 2].sum() + sizes[5, 1]
    assert (expected, expected) == (reader.counts.bytes, store.counts().bytes)


def test_footer_reads_are_counted(store, stores, part):
    store.reset()
    reader = ArrowReader(COLUMNS, TESTS, stores)
    assert 20 == len(days(reader, replace(part, footer=None)))
    assert store.counts().bytes == reader.counts.bytes > chunk_sizes(part)[:, 0].sum() + len(part.footer)


def test_scan_that_stops_early_counts_its_reads(store, stores, part):
    store.reset()
    reader = ArrowReader(COLUMNS, [], stores)
    rows = reader.read(replace(part, footer=None))
    assert 0 == next(rows).column(0)[0].as_py()
    rows.close()
    assert store.counts().bytes == reader.counts.bytes > chunk_sizes(part)[0].sum()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"size": 1}, "was replaced since the query was pruned"),
        ({"modified": 1_000}, "was replaced since the query was pruned"),
        ({"path": "s3a://scanprune/nothing.parquet"}, "does not exist"),
    ],
)
def test_object_other_than_listed_is_an_error(stores, part, change, why):
    with pytest.raises(OSError, match=why):
        days(ArrowReader(COLUMNS, TESTS, stores), replace(part, **change))


def test_listed_time_is_compared_by_seconds(stores, part):
    began = part.modified // 1000 * 1000
    for modified in (began, began + 999):
        assert 20 == len(days(ArrowReader(COLUMNS, TESTS, stores), replace(part, modified=modified)))
    with pytest.raises(OSError, match="was replaced"):
        days(ArrowReader(COLUMNS, TESTS, stores), replace(part, modified=began + 1000))


@pytest.mark.parametrize("keys", [(3, 55), (1000,)], ids=["rows are found", "no row is found"])
def test_object_replaced_during_the_read_is_an_error(store, stores, keys, monkeypatch):
    """The new object has the listed size and second; none of its rows may be returned, nor its keys tested."""
    listed = put(store, "replaced.parquet", facts())
    reader = ArrowReader(COLUMNS, [KeyTest(0, INT, MembershipTest.of(Domain.of(INT, *keys)))], stores)
    fetch, others = arrow_files._StoredObject.fetch, []

    def and_then_another(self, ranges):
        found = fetch(self, ranges)
        others.extend([] if others else [put(store, "replaced.parquet", facts(seed=1))])
        return found

    monkeypatch.setattr(arrow_files._StoredObject, "fetch", and_then_another)
    rows = reader.read(listed)
    with pytest.raises(OSError, match="was replaced"):
        next(rows)
    assert [listed.size] == [each.size for each in others]


def test_access_errors_hide_secrets(store, stores, part):
    right = stores[store.bucket]
    for wrong in (replace(right, secret_key="0" * 20), replace(right, access_key=None, secret_key=None)):
        with pytest.raises(OSError, match="Cannot read") as caught:
            days(ArrowReader(COLUMNS, TESTS, {store.bucket: wrong}), part)
        assert not {each for each in (right.access_key, right.secret_key, "0" * 20) if each in str(caught.value)}


def test_unreachable_store_is_an_error_within_seconds(stores, part):
    closed = {bucket: replace(each, endpoint="127.0.0.1:9") for bucket, each in stores.items()}
    began = datetime.now().astimezone()
    with pytest.raises(OSError, match="NETWORK_CONNECTION"), open_file(part, closed, Limits(store_attempts=2)):
        pass
    assert (datetime.now().astimezone() - began).total_seconds() < 10
