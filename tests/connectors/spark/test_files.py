from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.spark.files import LocalStorage, SparkStorage, exists, local_path, storage_of, whole_length
from sample_data.confs import conf

NAMES = ["plain", "a b", "100%", "a%20b", "é\U0001f600", "q'\"`", "a+b&c=d", "#?;:@!$,", "[x]{y}*", "new\nline", "..."]


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-int.from_bytes(data[-8:-4], "little") - 8 :]


def small(path: Path) -> Path:
    pq.write_table(pa.table({"x": [1, 2]}), path)
    return path


def wide(path: Path) -> Path:
    """A footer larger than the tail of the file that is read first."""
    pq.write_table(pa.table({f"column {index}": [1] for index in range(1500)}), path)
    assert len(footer_of(path)) > 64 << 10
    return path


def middling(path: Path) -> Path:
    """A footer larger than one reply of the JVM."""
    pq.write_table(pa.table({f"column {index}": [1] for index in range(100)}), path)
    assert 6000 < len(footer_of(path)) < 48_000
    return path


@pytest.mark.parametrize("name", NAMES)
def test_local_file_by_uri_and_by_path(tmp_path, name):
    path = small(tmp_path / name)
    size = path.stat().st_size
    assert footer_of(path) == LocalStorage().read_footer(path.as_uri(), size)
    assert footer_of(path) == LocalStorage().read_footer(str(path), size)
    assert path == local_path("file:" + path.as_uri().removeprefix("file://"))


@pytest.mark.parametrize("make", [small, middling, wide])
def test_local_footer_is_read_whole(tmp_path, make):
    path = make(tmp_path / "x")
    assert footer_of(path) == LocalStorage().read_footer(str(path), path.stat().st_size)


def test_replaced_file_is_refused(tmp_path):
    path = small(tmp_path / "x")
    with pytest.raises(OSError, match="so it was replaced"):
        LocalStorage().read_footer(str(path), path.stat().st_size - 1)


def test_other_storage_needs_a_jvm():
    with pytest.raises(OSError, match="without a JVM"):
        LocalStorage().read_footer("s3a://bucket/key", 100)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b"", "not a Parquet file"),
        (b"PAR1", "a footer of 8|cannot lie|not a"),
        (b"\0\0\0\0PARE", "encrypted"),
        ((100).to_bytes(4, "little") + b"PAR1", "a footer of 108 bytes cannot lie in 100"),
        (b"a,b\n1,2\n", "ends in b'1,2\\\\n'"),
    ],
    ids=["empty", "magic alone", "encrypted", "longer than the file", "text"],
)
def test_invalid_footers_are_refused(tail, message):
    with pytest.raises(ValueError, match=message):
        whole_length(tail, 100 if len(tail) != 4 else 4)


@pytest.fixture
def mounted(spark, tmp_path):
    """A directory under a scheme that only the JVM's file systems support; each authority has its own mounts."""
    authority = uuid.uuid4().hex
    (tmp_path / "files").mkdir()
    with conf(spark, {f"fs.viewfs.mounttable.{authority}.link./data": (tmp_path / "files").as_uri()}):
        yield tmp_path / "files", f"viewfs://{authority}/data"


@pytest.mark.parametrize("make", [small, middling, wide])
def test_remote_footer_is_read_through_the_jvm(spark, mounted, make):
    directory, uri = mounted
    path = make(directory / "a b%é")
    storage = storage_of(spark)
    assert footer_of(path) == storage.read_footer(f"{uri}/a%20b%25é", path.stat().st_size)


def test_remote_errors_are_os_errors(spark, mounted):
    _, uri = mounted
    with pytest.raises(OSError, match=r"Cannot read 'viewfs://.*/none': java\.io\.FileNotFoundException"):
        SparkStorage(spark).read_footer(f"{uri}/none", 100)
    with pytest.raises(OSError, match="No FileSystem for scheme"):
        SparkStorage(spark).read_footer("nowhere://x/y", 100)
    with pytest.raises(OSError, match="No FileSystem for scheme"):
        exists(spark, "nowhere://x/y")


def test_empty_remote_file_is_refused(spark, mounted):
    directory, uri = mounted
    (directory / "x").write_bytes(b"")
    with pytest.raises(ValueError, match="not a Parquet file"):
        SparkStorage(spark).read_footer(f"{uri}/x", 0)


def test_existence_check_uses_the_exact_name(spark, mounted):
    directory, uri = mounted
    small(directory / "[a]")
    assert [True, False] == [exists(spark, f"{uri}/{name}") for name in ("[a]", "a")]


@pytest.mark.spark
def test_local_footers_take_no_py4j_call(spark, bridge_calls, tmp_path):
    path = small(tmp_path / "x")
    size = path.stat().st_size
    storage_of(spark)
    assert 0 == bridge_calls(lambda: storage_of(spark).read_footer(path.as_uri(), size))
