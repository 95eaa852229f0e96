from __future__ import annotations

import pyarrow as pa
import pytest

from connectors.parquet.row_groups import FooterCache, read_row_groups
from connectors.spark.files import LocalStorage
from tests.connectors.hand_made import I32, Struct
from tests.connectors.parquet_files import column, domains, kept, read, written

TABLE = pa.table(
    {
        "a": [1, 2],
        "COL": [3, 4],
        "B": [5, 6],
        "b": [7, 8],
        "a.b": [9, 10],
        "s": pa.array([{"x": 11, "y.z": 12, "in": {"deep": 13}}, {"x": 14, "y.z": 15, "in": {"deep": 16}}]),
        "s.in": pa.array([{"deep": 17}, {"deep": 18}]),
        "l": [[1], [2]],
        "m": pa.array([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
        "S2": pa.array([{"X": 19}, {"X": 20}]),
    }
)


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "x", TABLE)


PLACES = {
    "plain": (("a",), "{[1, 2]}", "{[1, 2]}"),
    # Failure catalogue 129: a session conf decides whether case matters.
    "other case": (("col",), "{[3, 4]}", "{} or NULL"),
    "two that differ in case": (("B",), "all", "{[5, 6]}"),
    # Failure catalogue 128: a dot in a name is not a path step, nor the reverse.
    "dot in a name": (("a.b",), "{[9, 10]}", "{[9, 10]}"),
    "no struct of that name": (("a", "b"), "all", "all"),
    "field": (("s", "x"), "{[11, 14]} or NULL", "{[11, 14]} or NULL"),
    "field with a dot": (("s", "y.z"), "{[12, 15]} or NULL", "{[12, 15]} or NULL"),
    "field below a field": (("s", "in", "deep"), "{[13, 16]} or NULL", "{[13, 16]} or NULL"),
    "field of a struct with a dot": (("s.in", "deep"), "{[17, 18]} or NULL", "{[17, 18]} or NULL"),
    "field in other case": (("s2", "x"), "{[19, 20]} or NULL", "all"),
    # Failure catalogue 131: Spark reads NULL for a column that a file lacks.
    "missing": (("new",), "{} or NULL", "{} or NULL"),
    # Spark computes some fields while it reads, such as parts of a variant.
    "missing field": (("s", "new"), "all", "all"),
    "missing struct": (("t", "new"), "all", "all"),
    # Failure catalogue 132: one row has many values, or the file's type differs.
    "list": (("l",), "all", "all"),
    "element": (("l", "list", "element"), "all", "all"),
    "field of a list": (("l", "x"), "all", "all"),
    "map value": (("m", "key_value", "value"), "all", "all"),
    "struct as a value": (("s",), "all", "all"),
}


@pytest.mark.parametrize(("path", "insensitive", "sensitive"), PLACES.values(), ids=PLACES.keys())
def test_column_is_resolved_as_spark_does(file, path, insensitive, sensitive):
    wanted = column("bigint", *path)
    assert [insensitive] == domains(file, wanted)
    assert [sensitive] == domains(file, wanted, case_sensitive=True)


def test_missing_column_with_a_default_is_unknown(file):
    assert ["all"] == domains(file, column("bigint", "new", missing_is_null=False))


def test_row_groups_without_the_column_match_only_null(tmp_path):  # failure catalogue 37, 131
    files = [written(tmp_path / "1", pa.table({"y": [1]})), written(tmp_path / "2", pa.table({"x": [1]}))]
    assert [["{} or NULL"], ["{1}"]] == [domains(file, column("bigint")) for file in files]
    assert [False, True] == [kept(file, column("bigint"), 1)[0] for file in files]
    assert [True, False] == [kept(file, column("bigint"), None)[0] for file in files]


def test_each_file_is_read_by_its_own_schema(tmp_path):  # failure catalogue 130
    first = written(tmp_path / "1", pa.table({"x": [1], "y": [10]}))
    second = written(tmp_path / "2", pa.table({"y": [20], "z": [7.0], "x": [2]}))
    found = read([first, second], column("bigint")).containers
    assert ["{1}", "{2}"] == [str(found[index].domains["x"]) for index in range(2)]


def with_id(name: str, id_: int) -> pa.Field:
    return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(id_)})


@pytest.mark.parametrize(
    ("ids", "expected"),
    [((1, 2), "{1}"), ((2, 1), "{5}"), ((1, 1), "all"), ((3, 4), "all")],
    ids=["as named", "renamed", "twice", "without"],
)
def test_columns_are_found_by_field_id(tmp_path, ids, expected):  # failure catalogue 126, 127
    file = written(
        tmp_path / "x",
        pa.table({"x": [1], "y": [5]}, schema=pa.schema([with_id(*each) for each in zip("xy", ids, strict=True)])),
    )
    assert [expected] == domains(file, column("bigint", "x", field_ids=(1,)))


def test_file_without_field_ids_is_unknown(file):
    assert ["all"] == domains(file, column("bigint", "a", field_ids=(1,)))


def test_repeated_column_is_unknown(tmp_path):  # failure catalogue 132
    def repeat(metadata: Struct) -> None:
        metadata[2][1][1][1][3] = (I32, 2)

    table = pa.table({"x": pa.array([1, 2], pa.int64())})
    assert ["{[1, 2]}"] == domains(written(tmp_path / "1", table), column("bigint"))
    assert ["all"] == domains(written(tmp_path / "2", table, edit=repeat), column("bigint"))


def test_chunk_of_another_column_is_unknown(tmp_path):  # failure catalogue 130
    def swap(metadata: Struct) -> None:
        chunks = metadata[4][1][1][0][1][1][1]
        chunks.reverse()

    table = pa.table({"x": [1, 2], "y": [3, 4]})
    assert ["all"] == domains(written(tmp_path / "x", table, edit=swap), column("bigint"))


def test_bytes_count_selected_columns(file):
    def size(*tops: str, **options) -> int:
        result = read_row_groups([file], [], tops, LocalStorage(), FooterCache(), **options)
        return int(result.containers.sizes[0])

    assert size("a", "COL", "B", "a.b", "s", "s.in", "l", "m", "S2") == size(*TABLE.column_names)
    assert size("col") == size("COL") > size("col", case_sensitive=True) == 0
    assert size("s") + size("a.b") == size("a.b", "S")
