"""The contract of a connector, tested for Delta, for Parquet, and for the toy of `tests/connectors/toy.py`."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from py4j.protocol import Py4JError
from pyarrow import compute as pc
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from connectors import registry
from connectors.base import Connector, Table
from connectors.builds.query_builds import QueryBuilds
from connectors.columns import Column, resolve
from connectors.delta.table import DELTA
from connectors.parquet.table import PARQUET
from connectors.registry import _Registered, claiming, connectors_of, open_table, register, table_of
from connectors.scan.capabilities import capabilities_of
from connectors.spark.files import local_path
from connectors.spark.session_state import state_of
from pruning import PruningCache, explain, prune, pruned_read, report
from pruning.errors import SourceNotFoundError
from pruning.limits import LIMITS
from pruning.reasons import Reason, ReasonCode
from pruning.scan.skipping import prune_containers
from pruning.scan.statistics import UNKNOWN
from pruning.values.domain import Domain
from sample_data.rows import Rows
from tests.connectors.toy import STATISTICS, TOY
from tests.costs import FREE_BUILDS

pytestmark = [pytest.mark.spark, pytest.mark.quick(3)]

FILES, PER_FILE = 8, 50
OPTIONS = FREE_BUILDS
# Files are sorted by k, and each has a NULL; the extreme values of the type are in the last file.
GREATEST = 9223372036854775807
ROWS = f"""
    SELECT CASE WHEN id % {PER_FILE} = 7 THEN NULL WHEN id = {FILES * PER_FILE - 1} THEN {GREATEST} ELSE id END AS k,
           id % 3 AS other, repeat('🚀', int(id % 5)) AS `a.b`
    FROM range({FILES * PER_FILE})"""


def write_statistics(folder: Path) -> None:
    """Writes the statistics file of ORC files: rows, bytes, and the least, greatest and NULL count of integers."""
    found = {}
    for file in sorted(folder.glob("*.orc")):
        table = orc.read_table(file)
        columns = {
            name: [*(pc.min_max(table[name]).as_py().values()), table[name].null_count]
            for name in table.column_names
            if str(table[name].type).startswith("int")
        }
        found[file.name] = {"rows": table.num_rows, "size": file.stat().st_size, "columns": columns}
    (folder / STATISTICS).write_text(json.dumps(found))


@dataclass(frozen=True)
class Format:
    """A connector and the way to write its tables."""

    connector: Connector

    @property
    def writer(self) -> str:
        return "orc" if self.connector is TOY else self.connector.name

    def write(self, df, path: Path, mode: str = "append") -> str:
        df.repartitionByRange(FILES, F.coalesce("k", F.lit(0))).write.format(self.writer).mode(mode).save(str(path))
        if self.connector is TOY:
            write_statistics(path)
        return str(path)


@pytest.fixture
def _toy_connector(spark):
    """The toy is a connector of the session until the test ends."""
    registered = state_of(spark).slot(_Registered)
    before, registered.connectors = registered.connectors, [TOY]
    yield
    registered.connectors = before


@pytest.fixture(params=[DELTA, PARQUET, TOY], ids=lambda each: each.name)
def format_(request, _toy_connector) -> Format:
    return Format(request.param)


@pytest.fixture
def path(spark, format_, tmp_path) -> str:
    return format_.write(spark.sql(ROWS), tmp_path / "a table")


def opened(spark, path: str) -> Table:
    return open_table(spark, path, format_=None, version=None, timestamp=None, limits=LIMITS)


def column(table: Table, name: str) -> Column:
    return resolve(table.schema, name, table=table.name, case_sensitive=True, partitions=table.partition_columns)


def kept(table: Table, *keys: int) -> np.ndarray:
    found = column(table, "k")
    return prune_containers(table.files([found]), {"k": Domain.of(found.type, *keys)}).kept


def rows_of(df) -> Rows:
    return Rows(df.collect())


def test_connector_claims_its_own_tables(spark, format_, path, tmp_path):
    assert format_.connector is claiming(spark, path)
    others = [each for each in (DELTA, TOY) if each is not format_.connector]
    assert not any(each.claims_path(spark, path) for each in others)
    with pytest.raises(SourceNotFoundError):
        opened(spark, str(tmp_path / "nothing"))


def test_leaf_of_a_plan_is_the_table_at_its_path(spark, format_, path):
    df = spark.read.format(format_.writer).load(path)
    leaf = df._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    table = table_of(spark, leaf, LIMITS)
    assert not isinstance(table, Reason)
    assert (format_.connector, opened(spark, path).identity) == (table.connector, table.identity)
    assert rows_of(df) == rows_of(table.read(None))


GONE = re.compile("FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException")


def outcome(read: Callable[[], DataFrame]) -> Rows | str:
    """The rows of a DataFrame, or what happens where a file is gone that Spark listed when it was made."""
    try:
        return rows_of(read())
    except (PySparkException, Py4JError) as error:
        if GONE.search(str(error)):
            return "a file is gone"
        raise


MORE = "SELECT 60L AS k, id AS other, 'x' AS `a.b` FROM range(20)"


def append(spark, format_: Format, path: str) -> None:
    format_.write(spark.sql(MORE), Path(path))


def replace_files(spark, format_: Format, path: str) -> None:
    format_.write(spark.sql(MORE), Path(path), "overwrite")


def delete(spark, format_: Format, path: str) -> None:
    """Deletes the rows from 60 to 109: some rows of a file, and some of the next one."""
    if format_.connector is DELTA:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE k BETWEEN 60 AND 109")
        return
    files = spark.read.format(format_.writer).load(path).where("k IN (60, 109)").select("_metadata.file_path")
    for each in files.distinct().collect():
        local_path(each.file_path).unlink()
    if format_.connector is TOY:
        write_statistics(Path(path))


# A table that is opened later than Spark has listed its files, or pinned its version, has the files of that listing.
@pytest.mark.parametrize("change", [append, replace_files, delete], ids=lambda each: each.__name__)
def test_the_listing_of_a_leaf_counts_whatever_is_written_before_its_table_is_opened(
    spark, format_, path, tmp_path, change
):
    build = spark.read.format(format_.writer).load(format_.write(spark.sql("SELECT 60L AS k"), tmp_path / "build"))
    df = spark.read.format(format_.writer).load(path)
    joined = df.join(build.where("k > 5"), "k")
    leaf, _ = first_leaf(df), first_leaf(joined)
    change(spark, format_, path)
    table = table_of(spark, leaf, LIMITS)
    assert not isinstance(table, Reason)
    expected = outcome(lambda: df)
    every = np.ones(len(table.files([])), bool)
    assert expected == outcome(lambda: table.read(None)) == outcome(lambda: table.read(every))
    result = prune(joined, options=OPTIONS)
    assert outcome(lambda: joined) == outcome(lambda: result)
    if change is append or format_.connector is DELTA:
        assert FILES * PER_FILE == len(expected)
        kept_files = [(each.files_kept, each.files_total) for each in explain(result).tables]
        assert ([(1, FILES)], 1) == (kept_files, len(rows_of(result))), str(explain(result))
    else:
        assert expected == "a file is gone"


def test_statistics_contain_every_value(spark, path):
    table = opened(spark, path)
    files = table.files([column(table, "k")])
    statistics = files.columns["k"]
    assert FILES == len(files) == len(statistics.lows)
    found = table.read(None).select("k", "_metadata.file_name").collect()
    for at, name in enumerate(str(each).rpartition("/")[2] for each in files.names):
        values = [row.k for row in found if row.file_name == name]
        present = [each for each in values if each is not None]
        assert files.rows[at] == len(values)
        assert statistics.lows[at] <= min(present) <= max(present) <= statistics.highs[at]
        assert statistics.null_count[at] in {values.count(None), UNKNOWN}
        assert files.sizes[at] > 0


def test_row_groups_belong_to_the_selected_files(spark, path):
    table = opened(spark, path)
    groups = table.row_groups(np.array([1, 3]), [column(table, "k")], ["k"])
    assert {1, 3} == set(groups.parents.tolist())
    assert table.files([]).rows[[1, 3]].sum() == groups.rows.sum()


@pytest.mark.parametrize("keys", [(), (0,), (60, 61, 380), (-5,), (9223372036854775807,)], ids=str)
def test_kept_files_give_exactly_the_rows_of_the_keys(spark, path, keys):
    table = opened(spark, path)
    mask = kept(table, *keys)
    read = rows_of(table.read(mask).where(F.col("k").isin(*keys)))
    assert read == rows_of(spark.sql(ROWS).where(F.col("k").isin(*keys)))
    assert len(
        {each // PER_FILE for each in keys if 0 <= each < 400} | ({7} if max(keys, default=0) > 400 else set())
    ) == (mask.sum())


def test_opened_table_is_a_snapshot_with_an_identity(spark, format_, path):
    first, again = opened(spark, path), opened(spark, path)
    assert first.identity == again.identity == first.with_frame(first.read(None)).identity
    before = rows_of(first.read(None))
    format_.write(spark.sql("SELECT 5L AS k, 0L AS other, 'x' AS `a.b`"), Path(path))
    assert opened(spark, path).identity != first.identity
    assert before == rows_of(first.read(None))
    assert before == rows_of(first.read(np.ones(FILES, bool)))
    assert 401 == opened(spark, path).read(None).count()


def test_empty_table(spark, format_, tmp_path):
    path = format_.write(spark.sql(ROWS).where("false"), tmp_path / "empty")
    table = opened(spark, path)
    assert 0 == table.files([column(table, "k")]).rows.sum() == table.read(None).count()
    assert [] == rows_of(table.read(np.zeros(len(table.files([])), bool)))


def test_prune_skips_files_and_gives_equal_rows(spark, format_, path, tmp_path):
    facts = spark.read.format(format_.writer).load(path)
    rows = spark.sql("SELECT * FROM VALUES (60L, 'a'), (61L, 'a'), (NULL, 'a'), (380L, 'b') AS t (k, name)")
    build = spark.read.format(format_.writer).load(format_.write(rows, tmp_path / "build"))
    for name, files in (("a", 1), ("b", 1), ("c", 0)):
        df = facts.join(build.where(F.col("name") == name), "k")
        result = prune(df, options=OPTIONS)
        assert rows_of(df) == rows_of(result)
        (scan,) = report(result).tables
        assert (files, FILES) == (scan.planned.files_kept, scan.planned.files_total)
        assert files == scan.measured.files_read


def test_pruned_read_skips_files_and_gives_equal_rows(spark, path):
    read = pruned_read(spark, path, keys={"k": [60, 380, None]}, exact=True)
    assert rows_of(spark.sql(ROWS).where("k IN (60, 380)")) == rows_of(read)
    (table,) = explain(read).tables
    assert (2, FILES) == (table.files_kept, table.files_total)


def settle(path: str, seconds: float = 600) -> None:
    """Sets the modification times of a table's files to a while ago."""
    for each in Path(path).glob("part-*"):
        os.utime(each, (time.time() - seconds,) * 2)


def first_leaf(df):
    return df._jdf.queryExecution().optimizedPlan().collectLeaves().head()


def leaf_of(spark, format_: Format, path: str, mask: np.ndarray | None = None, **options: str):
    """The leaf of a build that reads a table, restricted to the files of `mask`."""
    df = spark.read.format(format_.writer).options(**options).load(path)
    table = table_of(spark, first_leaf(df), LIMITS)
    return first_leaf(table.read(mask))


def fingerprint(spark, leaf) -> str | Reason:
    name = leaf.relation().fileFormat().getClass().getSimpleName()
    (found,) = registry.fingerprints(spark, [name], lambda formats: [leaf] if formats == (name,) else [])
    return found


def changed(leaf, *, schema=None, options=None, output=None):
    """A copy of a leaf with another schema, other options, or other columns."""
    old = leaf.relation()
    relation = old.copy(
        old.location(),
        old.partitionSchema(),
        schema or old.dataSchema(),
        old.bucketSpec(),
        old.fileFormat(),
        options or old.options(),
        old.sparkSession(),
    )
    return leaf.copy(relation, output or leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())


def test_leaves_that_read_the_same_have_one_fingerprint(spark, format_, path):
    settle(path)
    leaf = leaf_of(spark, format_, path)
    first = fingerprint(spark, leaf)
    assert isinstance(first, str), first
    # Another listing of the same files, and another instance of the leaf, as when a query reads a table twice.
    assert {first} == {fingerprint(spark, each) for each in (leaf_of(spark, format_, path), leaf.newInstance())}
    (one, other) = format_.connector.fingerprints(spark, [leaf, changed(leaf, output=leaf.output().take(1))])
    assert first == one != other


def test_a_leaf_that_reads_other_columns_or_in_another_way_has_another_fingerprint(spark, format_, path):
    settle(path)
    leaf = leaf_of(spark, format_, path)
    schema, options, output = leaf.relation().dataSchema(), leaf.relation().options(), leaf.output()
    leaves = {
        "the table": leaf,
        "fewer columns": changed(leaf, output=output.take(2)),
        "columns in another order": changed(leaf, output=output.reverse()),
        "another name": changed(leaf, output=output.take(2).appended(output.last().withName("c"))),
        "never NULL": changed(leaf, output=output.take(2).appended(output.last().withNullability(False))),  # noqa: FBT003
        "another schema of the files": changed(leaf, schema=schema.add("more", "int")),
        "an option": changed(leaf, options=options.updated("mergeSchema", "true")),
        "another value of it": changed(leaf, options=options.updated("mergeSchema", "false")),
        "some files": leaf_of(spark, format_, path, np.arange(FILES) < 3),
        "other files": leaf_of(spark, format_, path, np.arange(FILES) > 3),
    }
    found = {name: fingerprint(spark, each) for name, each in leaves.items()}
    assert [] == [name for name, each in found.items() if not isinstance(each, str)]
    assert len(found) == len(set(found.values()))


def test_a_leaf_of_other_rows_has_another_fingerprint(spark, format_, path):
    def current(path: str = path) -> str | Reason:
        settle(path)
        return fingerprint(spark, leaf_of(spark, format_, path))

    found = [current()]
    format_.write(spark.sql("SELECT 5L AS k, 0L AS other, 'x' AS `a.b`"), Path(path))
    found.append(current())
    found.append(current(shutil.copytree(path, f"{path} again")))
    format_.write(spark.sql(ROWS), Path(path), "overwrite")
    found.append(current())
    assert [] == [each for each in found if not isinstance(each, str)]
    assert len(found) == len(set(found))


@pytest.mark.usefixtures("_toy_connector")
def test_versions_have_fingerprints_of_their_own_and_keep_them(spark, tmp_path):
    format_ = Format(DELTA)
    path = format_.write(spark.sql(ROWS), tmp_path / "a table")
    first = fingerprint(spark, leaf_of(spark, format_, path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k = 3")
    old, new = (fingerprint(spark, leaf_of(spark, format_, path, versionAsOf=each)) for each in "01")
    assert first == old != new == fingerprint(spark, leaf_of(spark, format_, path))


@pytest.mark.parametrize("format_", [PARQUET, TOY], indirect=True, ids=lambda each: each.name)
def test_files_that_may_not_be_those_that_were_listed_have_no_fingerprint(spark, format_, path):
    def why(leaf) -> str:
        found = fingerprint(spark, leaf)
        assert isinstance(found, Reason), found
        return found.detail

    leaf = leaf_of(spark, format_, path)
    assert "a file of it was written less than 60 seconds ago" == why(leaf)
    settle(path)
    leaf = leaf_of(spark, format_, path)
    assert isinstance(fingerprint(spark, leaf), str)
    first = min(Path(path).glob("part-*"))
    content, listed = first.read_bytes(), first.stat().st_mtime_ns
    for other, nanoseconds in ((content, listed - 10**9), (content + b"x", listed)):
        first.write_bytes(other)
        os.utime(first, ns=(nanoseconds, nanoseconds))
        assert "a file of it is not the one that was listed" == why(leaf)
    first.unlink()
    assert why(leaf) in {"a file of it is gone", "FileNotFoundError"}


def test_a_leaf_of_files_that_may_be_left_out_has_no_fingerprint(spark, format_, path, conf):
    settle(path)
    leaf = leaf_of(spark, format_, path)
    for name in ("ignoreMissingFiles", "ignoreCorruptFiles"):
        lenient = fingerprint(spark, changed(leaf, options=leaf.relation().options().updated(name, "true")))
        assert "Spark reads on where a file of it is gone or broken" == lenient.detail
        conf(f"spark.sql.files.{name}", "true")
        assert "Spark reads on where a file of it is gone or broken" == fingerprint(spark, leaf).detail
        conf(f"spark.sql.files.{name}", "false")
    assert isinstance(fingerprint(spark, leaf), str)


@pytest.mark.parametrize("format_", [DELTA, PARQUET], indirect=True, ids=lambda each: each.name)
def test_a_leaf_that_is_not_pinned_has_no_fingerprint(spark, format_, path):
    settle(path)
    leaf = spark.read.format(format_.writer).load(path)._jdf.queryExecution().analyzed()
    kind = {DELTA: "TahoeLogFileIndex", PARQUET: "InMemoryFileIndex"}[format_.connector]
    assert f"the files of a {kind} are not pinned" == fingerprint(spark, leaf).detail


@pytest.fixture
def builds(monkeypatch):
    """A function that returns the number of builds that have run since its last call."""
    run, count = QueryBuilds.run, [0]

    def counted(self, asked):
        count[0] += len(asked)
        return run(self, asked)

    def ran() -> int:
        found, count[0] = count[0], 0
        return found

    monkeypatch.setattr(QueryBuilds, "run", counted)
    return ran


def test_a_cache_keeps_a_build_as_long_as_its_table_is_the_same(spark, format_, path, tmp_path, builds):
    def agreed(cache: PruningCache | None, files: int) -> int:
        """The number of builds that a query ran, after a check that it kept `files` files of the table."""
        build = spark.read.format(format_.writer).load(small).where("name = 'a'")
        df = spark.read.format(format_.writer).load(path).join(build, "k")
        result = prune(df, options=OPTIONS, cache=cache)
        assert rows_of(df) == rows_of(result)
        assert files == report(result).tables[0].planned.files_kept
        return builds()

    rows = spark.sql("SELECT * FROM VALUES (60L, 'a'), (61L, 'a'), (NULL, 'a'), (380L, 'b') AS t (k, name)")
    small = format_.write(rows, tmp_path / "build")
    settle(small)
    cache = PruningCache()
    assert [1, 0, 1, 0] == [agreed(each, 1) for each in (cache, cache, None, cache)]
    format_.write(spark.sql("SELECT 380L AS k, 'a' AS name"), Path(small))
    settle(small)
    assert [1, 0] == [agreed(cache, 2) for _ in range(2)]
    assert (2, 3, 2) == (len(cache), cache.hits, cache.misses)


@pytest.mark.usefixtures("_toy_connector")
@pytest.mark.parametrize(
    ("gives", "why"),
    [
        (Connector.fingerprints, "the rows of a scan of toy are not pinned"),
        (lambda *_: [""], "the rows of a scan of toy are not pinned"),
        (lambda *_: [None, "a"], "ValueError"),
        (lambda *_: {}["secret"], "KeyError"),
    ],
)
def test_a_build_over_a_leaf_without_a_fingerprint_runs_each_time(spark, tmp_path, builds, monkeypatch, gives, why):
    monkeypatch.setattr(type(TOY), "fingerprints", gives)
    format_, cache = Format(TOY), PruningCache()
    facts = spark.read.orc(format_.write(spark.sql(ROWS), tmp_path / "facts"))
    build = spark.read.orc(format_.write(spark.sql("SELECT 60L AS k"), tmp_path / "build")).where("k > 5")
    for _ in range(2):
        df = facts.join(build, "k")
        result = prune(df, options=OPTIONS, cache=cache)
        assert rows_of(df) == rows_of(result)
        assert [why] == [each.detail for each in explain(result).reasons if each.code is ReasonCode.NOT_CACHED]
        assert (1, 0) == (builds(), len(cache))


@pytest.mark.usefixtures("_toy_connector")
def test_failed_connector_leaves_the_query_unchanged(spark, tmp_path, monkeypatch):
    def fails(*_: object) -> None:
        msg = "secret"
        raise ValueError(msg)

    format_ = Format(TOY)
    facts = spark.read.orc(format_.write(spark.sql(ROWS), tmp_path / "facts"))
    build = spark.read.orc(format_.write(spark.sql("SELECT 60L AS k"), tmp_path / "build")).where("k > 5")
    monkeypatch.setattr(type(TOY), "table_of", fails)
    df = facts.join(build, "k")
    result = prune(df, options=OPTIONS)
    assert rows_of(df) == rows_of(result)
    text = str(explain(result))
    assert "ValueError" in text
    assert "secret" not in text


@pytest.mark.usefixtures("_toy_connector")
def test_broken_metadata_is_a_problem_and_no_error(spark, tmp_path):
    """Only the toy is tested here; the tests of Delta and Parquet break their own logs and footers."""
    path = Format(TOY).write(spark.sql(ROWS), tmp_path / "a table")
    Path(path, STATISTICS).write_text("{")
    table = opened(spark, path)
    assert [ReasonCode.STATISTICS_FAILED] == [each.code for each in table.problems]
    assert (400, True) == (table.read(None).count(), kept(table, 60).all())


def test_registered_connector_comes_first_in_its_session_only(spark):
    session = spark.newSession()
    for _ in range(2):
        register(session, TOY)
    assert ["toy", "delta", "parquet"] == [each.name for each in connectors_of(session)]
    assert ["delta", "parquet"] == [each.name for each in connectors_of(spark)]


@pytest.mark.parametrize("format_", [DELTA, PARQUET], indirect=True, ids=lambda each: each.name)
def test_a_pruned_table_that_is_pruned_again_keeps_its_name(spark, path):
    table = opened(spark, path)
    again = table_of(spark, first_leaf(table.read(kept(table, 60))), LIMITS)
    assert Path(path).name == again.name


@pytest.mark.usefixtures("_toy_connector")
def test_only_the_reader_of_parquet_has_to_be_vectorised(spark, tmp_path, conf):
    tables = [opened(spark, Format(each).write(spark.sql(ROWS), tmp_path / each.name)) for each in (PARQUET, TOY)]
    conf("spark.sql.parquet.enableVectorizedReader", "false")
    refusals = [capabilities_of(spark, each, [], [column(each, "k")], exact=False).push_refusal for each in tables]
    assert [ReasonCode.NOT_VECTORISED, None] == refusals
