"""Generated tables: repeatable, complete or absent, and laid out as the catalogue says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pruning.errors import EnvironmentProblem
from sample_data import nasty, tpcds
from sample_data.cache import cache_folder, made_whole, remove_unfinished
from sample_data.confs import CODE_GENERATION, conf
from sample_data.rows import Rows, arrow_rows, ordered
from sample_data.tpcds import TpcdsFiles, generate

ROOT = Path(__file__).resolve().parents[1]
SCALE = 0.01


# A generator that takes a fraction of the time of the real one; the cache treats both alike.
STAND_IN = """
import sys
import duckdb

with duckdb.connect(sys.argv[1]) as connection:
    for table, rows in {"item": 180, "reason": 1, "store": 1}.items():
        connection.execute(f"CREATE TABLE {table} AS SELECT range AS sk FROM range({rows})")
"""


@dataclass(frozen=True, slots=True)
class Generated:
    files: TpcdsFiles
    shares: list[float]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    shares: list[float] = []
    target = tmp_path_factory.mktemp("it's a cache")
    return Generated(generate(SCALE, target, None, lambda _step, share: shares.append(share)), shares)


@pytest.fixture(scope="module")
def files(generated: Generated) -> TpcdsFiles:
    return generated.files


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = tmp_path / "stand_in.py"
    generator.write_text(STAND_IN)
    monkeypatch.setattr(tpcds, "_GENERATOR", generator)


def test_tables_have_the_types_of_the_tpcds_standard(files):
    schemas = {table: pq.read_schema(path) for table, path in files.paths.items()}
    assert set(tpcds.TABLES) == set(schemas)
    allowed = {pa.int32(), pa.int64(), pa.string(), pa.date32(), *(pa.decimal128(p, 2) for p in (5, 7, 15))}
    assert set() == {data_type for schema in schemas.values() for data_type in schema.types} - allowed
    bigint = {name for schema in schemas.values() for name in schema.names if schema.field(name).type == pa.int64()}
    assert {
        *("ss_ticket_number", "sr_ticket_number", "cs_order_number", "cr_order_number"),
        *("ws_order_number", "wr_order_number"),
    } == bigint
    assert pa.decimal128(7, 2) == schemas["store_sales"].field("ss_net_profit").type


@pytest.mark.full
def test_two_runs_make_equal_tables(files, tmp_path):
    other = generate(SCALE, tmp_path)
    different = [
        table
        for table, path in files.paths.items()
        if not pq.read_table(path).equals(pq.read_table(other.paths[table]))
    ]
    assert [] == different


@pytest.mark.usefixtures("stand_in")
def test_existing_tables_are_reused(tmp_path):
    first = generate(SCALE, tmp_path, ["item", "store"])
    before = {table: path.stat().st_mtime_ns for table, path in first.paths.items()}
    second = generate(SCALE, tmp_path, ["item", "reason", "store"])
    assert before == {table: second.paths[table].stat().st_mtime_ns for table in before}
    assert [1, 180, 1] == [pq.read_metadata(second.paths[table]).num_rows for table in ("reason", "item", "store")]
    folder = second.paths["item"].parent
    assert [".lock", "item.parquet", "manifest.json", "reason.parquet", "store.parquet"] == sorted(
        path.name for path in folder.iterdir()
    )


@pytest.mark.usefixtures("stand_in")
def test_tables_of_another_version_are_made_again(tmp_path):
    item = generate(SCALE, tmp_path, ["item"]).paths["item"]
    whole = item.read_bytes()
    item.write_bytes(b"of an older generator")
    manifest = item.with_name("manifest.json")
    manifest.write_text(manifest.read_text().replace("duckdb", "quackdb"))
    assert whole == generate(SCALE, tmp_path, ["item"]).paths["item"].read_bytes()


@pytest.mark.usefixtures("stand_in")
def test_interrupted_generator_leaves_no_file(tmp_path):
    def interrupt(_step: str, _share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(SCALE, tmp_path, ["item"], interrupt)
    assert [".lock", "manifest.json"] == sorted(path.name for path in (tmp_path / f"sf{SCALE}").iterdir())
    assert 180 == pq.read_metadata(generate(SCALE, tmp_path, ["item"]).paths["item"]).num_rows


def test_progress_is_monotonic_and_ends_at_one(generated):
    assert sorted(generated.shares) == generated.shares
    assert 1.0 == generated.shares[-1]


@pytest.mark.parametrize("scale", [0.0, 0.009, -1.0, float("nan"), float("inf")])
def test_invalid_scale_is_refused(tmp_path, scale):
    with pytest.raises(ValueError, match=re.escape(f"scale {scale!r}: it must be a number from 0.01 on")):
        generate(scale, tmp_path)


def test_unknown_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match="TPC-DS has no table 'items'"):
        generate(SCALE, tmp_path, ["items"])


def test_generator_failure_reports_its_last_line(tmp_path, monkeypatch):
    failing = tmp_path / "failing.py"
    failing.write_text("raise OSError('No space left on device')")
    monkeypatch.setattr(tpcds, "_GENERATOR", failing)
    with pytest.raises(EnvironmentProblem, match="OSError: No space left on device"):
        generate(SCALE, tmp_path / "cache", ["item"])


def test_folder_with_other_files_is_refused_and_kept(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="it holds other files"), cache_folder(tmp_path, {}, ["thesis.txt"]):
        pytest.fail("the folder was accepted")
    assert "years of work" == (tmp_path / "thesis.txt").read_text()


def test_unfinished_tables_are_removed_unless_locked(tmp_path):
    with cache_folder(tmp_path, {}, []):
        unfinished = tmp_path / "item.part"
        unfinished.mkdir()
        remove_unfinished(tmp_path)
        assert unfinished.exists()
    remove_unfinished(tmp_path)
    assert not unfinished.exists()


def test_folder_without_tables_is_not_cleaned(tmp_path):
    (tmp_path / "thesis.part").write_text("years of work")
    remove_unfinished(tmp_path)
    assert "years of work" == (tmp_path / "thesis.part").read_text()


def test_failed_write_leaves_no_file(tmp_path):
    def fail(unfinished: Path) -> None:
        (unfinished / "half").mkdir(parents=True)
        raise OSError(28)

    with pytest.raises(OSError, match="28"), made_whole(tmp_path / "table") as unfinished:
        fail(unfinished)
    assert [] == list(tmp_path.iterdir())


def test_nasty_tables_are_repeatable_and_number_their_rows():
    first, second = nasty.tables(), nasty.tables()
    # Arrow compares NaN as unequal to itself, so the serialized bytes are compared.
    assert [serialized(table) for table in first.values()] == [serialized(table) for table in second.values()]
    for table in first.values():
        assert list(range(table.num_rows)) == table["id"].to_pylist()


def serialized(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_catalogue_lists_every_nasty_table_with_its_columns():
    _, catalogue = (ROOT / "sample_data" / "README.md").read_text().split("\n## Nasty values ")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", catalogue, re.MULTILINE)
    columns = dict(rows)
    assert list(nasty.tables()) == list(columns)
    for name in ("integers", "unsigned", "floats", "all_null", "nested"):
        assert columns[name].strip("`").split() == nasty.tables()[name].schema.names[1:]


def test_tests_named_by_the_catalogue_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "sample_data" / "README.md").read_text())
    assert named
    assert [] == [path for path in named if not (ROOT / path).exists()]


@pytest.fixture(scope="module")
def tables(spark, files, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    from sample_data.layout import write_delta, write_parquet  # noqa: PLC0415  loads Spark

    chosen = ("store_sales", "inventory", "item")
    source = TpcdsFiles(files.scale, files.manifest, {table: files.paths[table] for table in chosen})
    target = tmp_path_factory.mktemp("lake house")
    with conf(spark, CODE_GENERATION):
        return {
            "delta": dict(write_delta(spark, source, target / "delta")),
            "parquet": dict(write_parquet(spark, source, target / "parquet")),
        }


def footers(folder: Path) -> list[pq.FileMetaData]:
    return [pq.read_metadata(path) for path in sorted(folder.glob("*.parquet"))]


FORMATS = pytest.mark.parametrize("table_format", ["delta", "parquet"])


@pytest.mark.spark
@FORMATS
@pytest.mark.parametrize(("table", "files_expected"), [("store_sales", 24), ("inventory", 12), ("item", 1)])
def test_layout_has_the_cataloged_files_and_row_groups(tables, table_format, table, files_expected):
    found = footers(tables[table_format][table])
    assert files_expected == len(found)
    groups = 1 if table == "item" else 4
    assert {groups} == {footer.num_row_groups for footer in found}


@pytest.mark.spark
@FORMATS
def test_days_of_files_are_disjoint_and_null_comes_first(tables, table_format):
    days = [
        pq.read_table(path, columns=["ss_sold_date_sk"])["ss_sold_date_sk"].to_pylist()
        for path in sorted(tables[table_format]["store_sales"].glob("*.parquet"))
    ]
    flat = [day for file in days for day in file]
    assert sorted(flat, key=lambda day: (day is not None, day)) == flat
    spans = [(min(known), max(known)) for file in days if (known := [day for day in file if day is not None])]
    assert all(one[1] < other[0] for one, other in pairwise(spans))


@pytest.mark.spark
@FORMATS
@pytest.mark.parametrize("table", ["store_sales", "inventory", "item"])
def test_layout_keeps_every_row(spark, files, tables, table_format, table):
    rows = spark.read.format(table_format).load(str(tables[table_format][table])).toArrow()
    source = pq.read_table(files.paths[table])
    assert source.schema.names == rows.schema.names
    assert Rows(arrow_rows(source)) == Rows(arrow_rows(rows))


@pytest.mark.spark
def test_written_tables_are_reused_without_conf_changes(spark, files, tmp_path):
    from sample_data.layout import write_parquet  # noqa: PLC0415  loads Spark

    source = TpcdsFiles(files.scale, files.manifest, {"web_returns": files.paths["web_returns"]})
    folder = write_parquet(spark, source, tmp_path)["web_returns"]
    before = sorted(path.name for path in folder.iterdir())
    assert before == sorted(path.name for path in write_parquet(spark, source, tmp_path)["web_returns"].iterdir())
    assert spark.conf.get("parquet.block.row.count.limit", None) is None


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in nasty.tables() if name != "unsigned"])
def test_spark_reads_nasty_tables_as_arrow_wrote_them(spark, tmp_path, name):
    table = nasty.tables()[name]
    pq.write_table(table, tmp_path / "table.parquet")
    rows = spark.read.parquet(str(tmp_path)).orderBy("id").toArrow()
    assert table.schema.names == rows.schema.names
    assert ordered(arrow_rows(table)) == ordered(arrow_rows(rows))


@pytest.fixture(scope="module")
def laid_out(spark, files, tmp_path_factory: pytest.TempPathFactory):
    """Writes a fact table in a layout and returns its folder.

    A day of `inventory` has enough rows for a partition, a day of `store_returns` has not.
    """
    from sample_data import layouts  # noqa: PLC0415  loads Spark

    target = tmp_path_factory.mktemp("layouts")
    patch = pytest.MonkeyPatch()
    patch.setattr(layouts, "ROWS_PER_PARTITION_AT_LEAST", 50)

    def write(name: str, table: str) -> Path:
        source = TpcdsFiles(files.scale, files.manifest, {table: files.paths[table]})
        with conf(spark, CODE_GENERATION):
            return layouts.write_layout(spark, layouts.LAYOUTS[name], source, target)[table]

    yield write
    patch.undo()


def data_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)


OTHER_LAYOUTS = pytest.mark.parametrize(
    ("layout", "table"),
    [
        ("partitioned", "inventory"),
        ("zordered", "store_returns"),
        ("unclustered", "store_returns"),
        ("small_files", "store_returns"),
    ],
)


@pytest.mark.full
@pytest.mark.spark
@OTHER_LAYOUTS
def test_other_layouts_keep_every_row_in_files_of_one_version(spark, files, laid_out, layout, table):
    folder = laid_out(layout, table)
    df = spark.read.format("delta").load(str(folder))
    source = pq.read_table(files.paths[table])
    assert Rows(arrow_rows(source)) == Rows(arrow_rows(df.select(*source.schema.names).toArrow()))
    # An engine that does not read the log reads all files of the folder.
    assert {path.name for path in data_files(folder)} == {file.rpartition("/")[2] for file in df.inputFiles()}


def spread(folder: Path, column: str) -> list[float]:
    """The standard deviation of a column within each file, which a few strays hardly change."""
    values = [pq.read_table(path, columns=[column])[column].drop_null().to_numpy() for path in data_files(folder)]
    return [float(np.std(each)) for each in values]


@pytest.mark.full
@pytest.mark.spark
def test_z_order_clusters_days_and_random_order_does_not(spark, laid_out):
    from delta.tables import DeltaTable  # noqa: PLC0415  loads Spark

    zordered = laid_out("zordered", "store_returns")
    random = spread(laid_out("unclustered", "store_returns"), "sr_returned_date_sk")
    gathered = spread(zordered, "sr_returned_date_sk")
    assert (8, 8) == (len(random), len(gathered))
    assert max(random) < 1.2 * min(random)
    assert sum(gathered) < 0.9 * sum(random)
    # Items are too few at this scale to change a file; the log shows that they are part of the order.
    history = DeltaTable.forPath(spark, str(zordered)).history().select("operationParameters.zOrderBy").toArrow()
    assert '["sr_returned_date_sk","sr_item_sk"]' in history["zOrderBy"].to_pylist()


@pytest.mark.full
@pytest.mark.spark
def test_files_are_small(laid_out, monkeypatch):
    monkeypatch.setattr("sample_data.layouts._SMALL_FILE_BYTES", 4_000)
    found = data_files(laid_out("small_files", "web_returns"))
    assert len(found) > 8
    assert {2, 3} >= {pq.ParquetFile(path).metadata.num_row_groups for path in found}
    assert max(spread(laid_out("small_files", "web_returns"), "wr_returned_date_sk")) < 300


@pytest.mark.full
@pytest.mark.spark
def test_fact_is_partitioned_by_date_if_days_are_large(laid_out):
    stock, returns = (data_files(laid_out("partitioned", table)) for table in ("inventory", "store_returns"))
    days = [path.parent.name for path in stock]
    assert len(days) == len({*days}) == len([day for day in days if day.startswith("inv_date_sk=")])
    assert [] == [path for path in returns if "=" in path.parent.name]
