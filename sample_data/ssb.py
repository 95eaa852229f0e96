"""Tables of the Star Schema Benchmark, derived from TPC-H tables of DuckDB's generator.

P. O'Neil, E. O'Neil, X. Chen: "The Star Schema Benchmark", revision 3, derives it from TPC-H: LINEITEM and ORDERS are
one fact table, PARTSUPP is gone, dates are numbers such as 19940131 with a dimension of seven years, prices are cents.
The sizes of tables at a scale of 1 are those of the paper: 6,000,000 lines, 30,000 customers, 2,000 suppliers, 200,000
parts, whose number grows by the logarithm of the scale. TPC-H has more customers, suppliers and parts; keys of a line
are taken modulo the sizes here. Where the paper draws a value (the last digit of a city, the last digits of a brand),
it is a hash of the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sample_data.cache import Manifest, Progress, cache_folder, made_whole, quiet
from sample_data.generator import Generator, duckdb_version, exported, fill_database, valid_scale, wanted_tables
from sample_data.source import Clustered, Schema, SourceFiles

TABLES = ("lineorder", "customer", "supplier", "part", "date")
SCHEMA = Schema(
    "ssb",
    TABLES,
    {"lineorder": Clustered("lo_orderdate", ("lo_orderkey", "lo_linenumber"), 24, "lo_partkey")},
    label="ssb",
)
LEAST_SCALE = 0.001
_PROGRAM = Path(__file__).with_name("dsdgen.py")
_DATABASE = "dbgen.duckdb"
_REVISION = 1
_BYTES_PER_SCALE = 270_000_000
_CUSTOMERS, _SUPPLIERS, _PARTS = 30_000, 2_000, 200_000


def generate(
    scale: float, target: Path, tables: Sequence[str] | None = None, progress: Progress = quiet
) -> SourceFiles:
    """The files of `tables` (None: all) below `target`; missing files are generated.

    Equal scales and versions give equal rows. Raises `ValueError` for an invalid scale or table, `EnvironmentProblem`
    if packages are missing.
    """
    generator = Generator("TPC-H", "tpch", _PROGRAM, _BYTES_PER_SCALE)
    valid_scale("SSB", scale, LEAST_SCALE)
    wanted = wanted_tables("SSB", TABLES, tables)
    made: Manifest = {"generator": f"duckdb {duckdb_version(generator)}", "ssb": _REVISION, "scale": scale}
    folder = target / SCHEMA.folder(scale)
    paths = {table: folder / f"{table}.parquet" for table in wanted}
    with cache_folder(folder, made, (_DATABASE, *(f"{table}.parquet" for table in TABLES))):
        missing = {table: path for table, path in paths.items() if not path.exists()}
        if missing:
            fill_database(generator, folder / _DATABASE, scale, progress)
            _export(folder / _DATABASE, scale, missing, progress)
            (folder / _DATABASE).unlink()
    progress("SSB generated", 1.0)
    return SourceFiles(scale, made, paths, SCHEMA)


def _export(database: Path, scale: float, paths: Mapping[str, Path], progress: Progress) -> None:
    from sample_data.dsdgen import quoted, read_only  # noqa: PLC0415  imports duckdb, which only a first run needs

    with read_only(database) as connection:
        # Rows are laid out in an order of their own later, and lines of a large scale exceed the memory otherwise.
        connection.execute("SET preserve_insertion_order = false")
        for table, path in exported(paths, progress):
            selected = _SELECTED[table].format(**_sizes(scale))
            with made_whole(path) as unfinished:
                connection.execute(f"COPY ({selected}) TO {quoted(unfinished)} (FORMAT parquet)")


def _sizes(scale: float) -> Mapping[str, int]:
    """The numbers of customers, suppliers and parts."""
    parts = math.floor(1 + math.log2(scale)) if scale >= 1 else scale
    return {
        "customers": max(1, round(_CUSTOMERS * scale)),
        "suppliers": max(1, round(_SUPPLIERS * scale)),
        "parts": max(1, round(_PARTS * parts)),
    }


def _drawn(key: str, values: int) -> str:
    """An SQL expression for one of `values` numbers from 0 on, by the multiplicative hash of a key."""
    return f"(({key}::BIGINT * 2654435761) % 4294967296 * {values} // 4294967296)"


def _city(nation: str, key: str) -> str:
    """An SQL expression for a city: nine characters of its nation and a digit."""
    return f"rpad({nation}, 9, ' ')[:9] || {_drawn(key, 10)}"


_LINEORDER = """
SELECT
    l_orderkey::BIGINT AS lo_orderkey,
    l_linenumber::INTEGER AS lo_linenumber,
    (1 + (o_custkey - 1) % {customers})::INTEGER AS lo_custkey,
    (1 + (l_partkey - 1) % {parts})::INTEGER AS lo_partkey,
    (1 + (l_suppkey - 1) % {suppliers})::INTEGER AS lo_suppkey,
    strftime(o_orderdate, '%Y%m%d')::INTEGER AS lo_orderdate,
    o_orderpriority AS lo_orderpriority,
    o_shippriority::VARCHAR AS lo_shippriority,
    l_quantity::INTEGER AS lo_quantity,
    (l_extendedprice * 100)::INTEGER AS lo_extendedprice,
    (o_totalprice * 100)::INTEGER AS lo_ordtotalprice,
    (l_discount * 100)::INTEGER AS lo_discount,
    ((l_extendedprice * 100)::BIGINT * (100 - (l_discount * 100)::BIGINT) // 100)::INTEGER AS lo_revenue,
    ((l_extendedprice * 100)::BIGINT // l_quantity::BIGINT * 6 // 10)::INTEGER AS lo_supplycost,
    (l_tax * 100)::INTEGER AS lo_tax,
    strftime(l_commitdate, '%Y%m%d')::INTEGER AS lo_commitdate,
    l_shipmode AS lo_shipmode
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
"""

_CUSTOMER = f"""
SELECT
    c_custkey::INTEGER AS c_custkey, c_name, c_address, {_city("n_name", "c_custkey")} AS c_city,
    n_name AS c_nation, r_name AS c_region, c_phone, c_mktsegment
FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
WHERE c_custkey <= {{customers}}
ORDER BY c_custkey
"""

_SUPPLIER = f"""
SELECT
    s_suppkey::INTEGER AS s_suppkey, s_name, s_address, {_city("n_name", "s_suppkey")} AS s_city,
    n_name AS s_nation, r_name AS s_region, s_phone
FROM supplier JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
WHERE s_suppkey <= {{suppliers}}
ORDER BY s_suppkey
"""

# TPC-H's brand has the digit of the manufacturer and one more, as the category here.
_PART = f"""
SELECT
    p_partkey::INTEGER AS p_partkey,
    split_part(p_name, ' ', 1) || ' ' || split_part(p_name, ' ', 2) AS p_name,
    'MFGR#' || right(p_mfgr, 1) AS p_mfgr,
    'MFGR#' || right(p_brand, 2) AS p_category,
    'MFGR#' || right(p_brand, 2) || (1 + {_drawn("p_partkey", 40)}) AS p_brand1,
    split_part(p_name, ' ', 1) AS p_color,
    p_type, p_size::INTEGER AS p_size, p_container
FROM part
WHERE p_partkey <= {{parts}}
ORDER BY p_partkey
"""

_DATE = """
SELECT
    strftime(day, '%Y%m%d')::INTEGER AS d_datekey,
    strftime(day, '%B %-d, %Y') AS d_date,
    dayname(day) AS d_dayofweek,
    monthname(day) AS d_month,
    year(day)::INTEGER AS d_year,
    (year(day) * 100 + month(day))::INTEGER AS d_yearmonthnum,
    strftime(day, '%b%Y') AS d_yearmonth,
    (dayofweek(day) + 1)::INTEGER AS d_daynuminweek,
    day(day)::INTEGER AS d_daynuminmonth,
    dayofyear(day)::INTEGER AS d_daynuminyear,
    month(day)::INTEGER AS d_monthnuminyear,
    (1 + (dayofyear(day) - 1) // 7)::INTEGER AS d_weeknuminyear,
    CASE
        WHEN month(day) = 12 THEN 'Christmas'
        WHEN month(day) IN (1, 2) THEN 'Winter'
        WHEN month(day) IN (3, 4) THEN 'Spring'
        WHEN month(day) IN (5, 6, 7, 8) THEN 'Summer'
        ELSE 'Fall'
    END AS d_sellingseason,
    (dayofweek(day) = 6)::INTEGER AS d_lastdayinweekfl,
    (day = last_day(day))::INTEGER AS d_lastdayinmonthfl,
    (strftime(day, '%m%d') IN ('0101', '0704', '1111', '1225'))::INTEGER AS d_holidayfl,
    (dayofweek(day) BETWEEN 1 AND 5)::INTEGER AS d_weekdayfl
FROM (SELECT (DATE '1992-01-01' + range::INTEGER) AS day FROM range(2557))
ORDER BY d_datekey
"""

_SELECTED: Mapping[str, str] = MappingProxyType(
    {"lineorder": _LINEORDER, "customer": _CUSTOMER, "supplier": _SUPPLIER, "part": _PART, "date": _DATE}
)
