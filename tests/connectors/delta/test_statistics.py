from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from connectors.columns import quoted
from pruning.scan.statistics import UNKNOWN
from pruning.values.domain import Domain
from pruning.values.types import ValueType
from sample_data.confs import conf
from tests.connectors.delta_logs import column_of, opened, schema_of, write_log

pytestmark = pytest.mark.spark

TYPES = {
    "i": "int",
    "big": "bigint",
    "x": "double",
    "f": "float",
    "d": "decimal(38,2)",
    "s": "string",
    "day": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "flag": "boolean",
    "raw": "binary",
    "p.q": "bigint",
}
SCHEMA = schema_of({**TYPES, "nested": {"leaf": "int", "a.b": {"c": "string"}}})
INF = float("inf")
NOON = dt.datetime.fromisoformat("2024-02-29T12:00:00")
EPOCH = dt.datetime.fromisoformat("1970-01-01")
ROWS = 10


def type_of(name):
    return ValueType.parse({**TYPES, "nested.leaf": "int", "nested.`a.b`.c": "string"}[name.replace("`p.q`", "p.q")])


def stats(name="i", low=None, high=None, nulls=0, rows=ROWS):
    sides = {"minValues": low, "maxValues": high, "nullCount": nulls}
    return {"numRecords": rows, **{side: {name: value} for side, value in sides.items() if value is not None}}


def between(name, low, high, *, null=False, nan=False):
    return Domain(Domain.between(type_of(name), low, high).ranges, null, nan)


def everything(name, *, null=True):
    return between(name, None, None, null=null, nan=type_of(name).is_float)


def micros(text):
    return (dt.datetime.fromisoformat(text) - EPOCH) // dt.timedelta(microseconds=1)


def moment(text, **room):
    return micros(text) + room.get("milli", 0) * 999 + room.get("minute", 0) * 60_000_000


CASES = {
    "integers": (stats("i", -5, 7), "i", between("i", -5, 7)),
    "greatest and least bigint": (stats("big", -(2**63), 2**63 - 1), "big", between("big", -(2**63), 2**63 - 1)),
    "a name with a dot": (stats("p.q", 1, 2), "`p.q`", between("p.q", 1, 2)),
    "strings": (stats("s", "", "é😀"), "s", between("s", "", "é😀")),
    "dates": (stats("day", "0001-01-01", "9999-12-31"), "day", between("day", dt.date.min, dt.date.max)),
    "booleans": (stats("flag", low=False, high=False), "flag", between("flag", 0, 0)),
    "long decimal": (stats("d", 1.25, 99), "d", between("d", Decimal("1.25"), 99)),
    # Failure catalogue 82: a writer that stores decimals as doubles.
    "decimal as double": (
        '{"numRecords": 10, "minValues": {"d": 1.5e+3}, "maxValues": {"d": 1.5e+3}, "nullCount": {"d": 0}}',
        "d",
        between("d", 1500, 1500),
    ),
    "decimal too large": (stats("d", 1, 10**40), "d", everything("d", null=False)),
    # Failure catalogue 93: truncated to milliseconds.
    "timestamp": (
        stats("ts", "2024-02-29T12:00:00.123Z", "2024-02-29T12:00:00.123Z"),
        "ts",
        between("ts", moment("2024-02-29T12:00:00.123"), moment("2024-02-29T12:00:00.123", milli=1)),
    ),
    "timestamp with an offset": (
        stats("ts", "2024-02-29T12:00:00+05:45", "2024-02-29T12:00:00-03:30"),
        "ts",
        between("ts", moment("2024-02-29T06:15:00"), moment("2024-02-29T15:30:00", milli=1)),
    ),
    # Failure catalogue 96: the offset of Stockholm was 53 minutes and 28 seconds.
    "timestamp with a cut offset": (
        stats("ts", "1850-01-01T00:53:00.000+00:53", "1850-01-01T00:53:00.000+00:53"),
        "ts",
        between("ts", moment("1850-01-01T00:00:00", minute=-1), moment("1850-01-01T00:00:00", minute=1, milli=1)),
    ),
    # Failure catalogue 101: the reader's time zone may differ from the writer's.
    "timestamp without a zone": (
        stats("ts", "2024-02-29T12:00:00", "2024-02-29 12:00:00"),
        "ts",
        everything("ts", null=False),
    ),
    "timestamp as a number": (stats("ts", 0, 1), "ts", everything("ts", null=False)),
    # Failure catalogue 102: years with five digits.
    "extended year": (
        stats("ts", "2024-02-29T12:00:00Z", "+10000-01-01T00:00:00.000Z"),
        "ts",
        between("ts", NOON, 253402300800000999),
    ),
    "negative year": (
        stats("day", "-0044-03-15", "2024-02-29"),
        "day",
        between("day", -735_525, dt.date(2024, 2, 29)),
    ),
    # Failure catalogue 102: NTZ statistics of some writers end in Z.
    "local timestamp": (
        stats("ntz", "2024-02-29T12:00:00.000Z", "2024-02-29 12:00:00.000"),
        "ntz",
        between("ntz", NOON, moment("2024-02-29T12:00:00", milli=1)),
    ),
    # Failure catalogue 72: JSON null is no bound.
    # Failure catalogue 119: Delta skips no file that lacks a bound or a count.
    "null bound": ({**stats("i", 1), "maxValues": {"i": None}}, "i", everything("i", null=False)),
    "high alone": (stats("s", None, "m"), "s", everything("s", null=False)),
    # Failure catalogue 68: a missing null count is not zero.
    "no null count": (stats("i", 1, 2, None), "i", everything("i")),
    "some nulls": (stats("i", 1, 2, 3), "i", between("i", 1, 2, null=True)),
    "nulls alone": (stats("i", None, None, ROWS), "i", Domain.only_null(ValueType("int"))),
    # Failure catalogue 71: "all null" beside a bound.
    "nulls alone with a bound": (stats("s", "a", None, ROWS), "s", everything("s")),
    "more nulls than rows": (stats("i", 1, 2, ROWS + 1), "i", between("i", 1, 2, null=True)),
    "negative null count": (stats("i", 1, 2, -1), "i", everything("i")),
    # Failure catalogue 119: inverted bounds.
    "inverted": (stats("i", 2, 1), "i", everything("i", null=False)),
    # Failure catalogue 60, 61: bounds copied from Parquet do not cover NaN.
    "finite doubles": (stats("x", 3.0, 3.0), "x", between("x", 3.0, 3.0, nan=True)),
    "infinite doubles": (stats("x", "-Infinity", "Infinity"), "x", between("x", -INF, INF, nan=True)),
    # Failure catalogue 62: NaN as a bound.
    "NaN above": (stats("x", 1.0, "NaN"), "x", between("x", 1.0, None, nan=True)),
    "NaN below": (stats("x", "NaN", 1.0), "x", between("x", None, 1.0, nan=True)),
    "bare NaN": ('{"numRecords": 10, "minValues": {"x": NaN}, "maxValues": {"x": NaN}}', "x", everything("x")),
    # Failure catalogue 66: -0.0 equals 0.0.
    "negative zero": (stats("x", -0.0, -0.0), "x", between("x", 0.0, 0.0, nan=True)),
    "floats": (stats("f", 0.1, 0.5), "f", between("f", 0.10000000149011612, 0.5, nan=True)),
    # Failure catalogue 110: other columns have statistics, this one has none.
    "another column": (stats("i", 1, 2), "big", everything("big")),
    "binary": (stats("raw", "a", "b"), "raw", everything("raw", null=False)),
    "nulls alone in binary": (stats("raw", None, None, ROWS), "raw", Domain.only_null(ValueType("binary"))),
    # Failure catalogue 70: writers disagree about the fields of a NULL struct.
    "nested": (
        stats("nested", {"leaf": 1}, {"leaf": 2}, {"leaf": 0}),
        "nested.leaf",
        between("nested.leaf", 1, 2, null=True),
    ),
    "nested with dots": (
        stats("nested", {"a.b": {"c": "k"}}, {"a.b": {"c": "l"}}, {"a.b": {"c": 1}}),
        "nested.`a.b`.c",
        between("nested.`a.b`.c", "k", "l", null=True),
    ),
    "struct without statistics": (stats("nested", {}, {}, {}), "nested.leaf", everything("nested.leaf")),
    # Failure catalogue 120: unreadable statistics.
    "no statistics": (None, "i", everything("i")),
    "empty": ("", "i", everything("i")),
    "empty object": ("{}", "i", everything("i")),
    "no object": ("5", "i", everything("i")),
    "cut off": ('{"numRecords": 10, "minValues": {"i": 1', "i", everything("i")),
    "text for a number": (stats("i", "one", "two"), "i", everything("i", null=False)),
    # Failure catalogue 75: a bound beyond the range of the column's type.
    "number beyond the type": (stats("i", 0, 3_000_000_000), "i", everything("i", null=False)),
    "fraction for an integer": (
        '{"numRecords": 10, "maxValues": {"i": 1.5}, "nullCount": {"i": 0}}',
        "i",
        everything("i", null=False),
    ),
    "struct for a number": (stats("i", {"leaf": 1}, 5), "i", everything("i", null=False)),
    "fields of no column": ({**stats("i", 1, 2), "extra": {"i": 9}}, "i", between("i", 1, 2)),
}
BROKEN = (
    "decimal too large",
    "no object",
    "cut off",
    "text for a number",
    "number beyond the type",
    "fraction for an integer",
    "struct for a number",
)


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    adds = [{"stats": found} for found, _, _ in CASES.values()]
    return opened(spark, write_log(tmp_path_factory.mktemp("statistics") / "t", SCHEMA, adds))


@pytest.fixture(scope="module")
def containers(table):
    return table.files([column_of(table, name) for name in {name: None for _, name, _ in CASES.values()}])


@pytest.mark.parametrize("case", CASES)
def test_stored_statistics_become_domains(containers, case):
    _, name, expected = CASES[case]
    assert expected == containers[list(CASES).index(case)].domains[name]


def test_files_are_described_by_the_log(containers, table):
    assert len(CASES) == len(containers)
    assert [100 + index for index in range(len(CASES))] == containers.sizes.tolist()
    assert containers.names[3].endswith("/t/0003.parquet")
    assert containers.names[3].startswith("file:/")
    assert containers.names[:2] == (containers.names[0], containers.names[1])
    assert [UNKNOWN, ROWS] == [containers[list(CASES).index(name)].rows for name in ("no statistics", "integers")]
    assert 0 == table.version


# Failure catalogue 120: unparseable statistics are counted and reported, and never raise.
def test_unparseable_statistics_are_reported(containers, table):
    assert containers
    assert [f"{len(BROKEN)} of {len(CASES)} files have statistics that cannot be parsed"] == [
        reason.detail for reason in table.problems
    ]


@pytest.mark.parametrize(
    "confs",
    [
        # Failure catalogue 103: the legacy parser reads a fraction of six digits as milliseconds.
        {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
        {"spark.sql.session.timeZone": "Asia/Kathmandu"},
        {"spark.sql.ansi.enabled": "false", "spark.sql.json.enablePartialResults": "false"},
        {"spark.sql.caseSensitive": "true"},
    ],
    ids=["legacy parser", "time zone", "not ANSI", "case"],
)
def test_timestamps_are_parsed_independently_of_session_confs(spark, tmp_path, confs):
    found = stats("ts", "2024-02-29T12:00:00.123456Z", "2024-02-29T12:00:00.123456Z")
    source = write_log(tmp_path / "t", SCHEMA, [{"stats": found}])
    with conf(spark, confs):
        table = opened(spark, source)
        domain = table.files([column_of(table, "ts")])[0].domains["ts"]
    low = moment("2024-02-29T12:00:00.123456")
    assert between("ts", low, low + 999) == domain


# As regular expressions and variables, some of these names mean others of them.
NAMES = ("a+b", "aab", "a.b", "axb", "it's", "${env:HOME}", "b\\n", "c`d", "`a+b`")


@pytest.mark.parametrize(
    "confs",
    [
        {},
        {"spark.sql.parser.quotedRegexColumnNames": "true"},
        {"spark.sql.parser.escapedStringLiterals": "true"},
        {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    ],
    ids=["default", "names are patterns", "no escapes", "ANSI"],
)
def test_each_column_has_its_own_statistics_whatever_its_name(spark, tmp_path, confs):
    numbers = {name: at for at, name in enumerate(NAMES)}
    stored = {"numRecords": ROWS, "minValues": numbers, "maxValues": numbers, "nullCount": dict.fromkeys(NAMES, 0)}
    source = write_log(tmp_path / "t", schema_of(dict.fromkeys(NAMES, "int")), [{"stats": stored}])
    with conf(spark, confs):
        table = opened(spark, source)
        columns = [column_of(table, quoted(name)) for name in NAMES]
        found = table.files(columns)
    for column, number in zip(columns, numbers.values(), strict=True):
        assert Domain.of(ValueType("int"), number) == found[0].domains[column.name]


def test_impossible_row_counts_are_unknown(spark, tmp_path):
    adds = [{"stats": {**stats("i", 1, 2), "numRecords": rows}} for rows in (0, -1, "ten", None, 1)]
    table = opened(spark, write_log(tmp_path / "t", SCHEMA, adds))
    assert [UNKNOWN] * 4 + [1] == table.files([column_of(table, "i")]).rows.tolist()


# Failure catalogue 88, 89: a table property sets the prefix length of strings.
def test_prefix_length_is_a_table_property(spark, tmp_path):
    properties = {"delta.dataSkippingStringPrefixLength": "4"}
    source = write_log(tmp_path / "t", SCHEMA, [{"stats": stats("s", "abcd", "abcd")}], configuration=properties)
    table = opened(spark, source)
    column = column_of(table, "s")
    assert between("s", "abcd", "abd") == table.files([column])[0].domains["s"]
    wide = table.storage_safe_ranges("s", Domain.of(ValueType("string"), "abcdefg").ranges)
    assert between("s", "abc", "abcdefg").ranges == wide


PARTITION_TYPES = {
    "p_int": "int",
    "p_text": "string",
    "p_day": "date",
    "p_ts": "timestamp",
    "p_ntz": "timestamp_ntz",
    "p_dec": "decimal(10,2)",
    "p_x": "double",
    "p_flag": "boolean",
    "p_raw": "binary",
}


def value_of(name, *values, **flags):
    return Domain(Domain.of(ValueType.parse(PARTITION_TYPES[name]), *values).ranges, **flags)


def any_of(name, *, null=True):
    type_ = ValueType.parse(PARTITION_TYPES[name])
    return Domain(Domain.all(type_).ranges, null, type_.is_float)


def only_null(name):
    return Domain.only_null(ValueType.parse(PARTITION_TYPES[name]))


HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
PARTITIONS = {
    "integer": ("p_int", "-7", value_of("p_int", -7)),
    "text": ("p_text", "a b:%/='\"`\n{é}", value_of("p_text", "a b:%/='\"`\n{é}")),
    "long text": ("p_text", "x" * 100, value_of("p_text", "x" * 100)),
    "null": ("p_text", None, only_null("p_text")),
    "null integer": ("p_int", None, only_null("p_int")),
    # Failure catalogue 111: NULL by the protocol, an empty string by Spark.
    "empty text": ("p_text", "", value_of("p_text", "", null=True)),
    "empty integer": ("p_int", "", only_null("p_int")),
    # Failure catalogue 112: Hive's name for NULL.
    "Hive's null": ("p_text", HIVE_NULL, any_of("p_text")),
    "Hive's null as integer": ("p_int", HIVE_NULL, any_of("p_int")),
    "no integer": ("p_int", "seven", any_of("p_int")),
    "date": ("p_day", "2024-02-29", value_of("p_day", dt.date(2024, 2, 29))),
    "timestamp": ("p_ts", "2024-02-29T12:00:00.000001Z", value_of("p_ts", micros("2024-02-29T12:00:00.000001"))),
    "old timestamp": ("p_ts", "1850-01-01T00:00:00.000000Z", value_of("p_ts", micros("1850-01-01T00:00:00"))),
    # Failure catalogue 101: written in some session's time zone.
    "timestamp without a zone": ("p_ts", "2024-02-29 12:00:00", any_of("p_ts")),
    "local timestamp": ("p_ntz", "2024-02-29 12:00:00", value_of("p_ntz", NOON)),
    "decimal": ("p_dec", "12.30", value_of("p_dec", Decimal("12.30"))),
    "double": ("p_x", "0.1", value_of("p_x", 0.1)),
    "NaN": ("p_x", "NaN", any_of("p_x", null=False)),
    "boolean": ("p_flag", "true", value_of("p_flag", 1)),
    "binary": ("p_raw", "é", value_of("p_raw", "é".encode())),
}


@pytest.fixture(scope="module")
def partitioned(spark, tmp_path_factory):
    schema = schema_of({**PARTITION_TYPES, "i": "int"})
    adds = [
        {"partitionValues": {**dict.fromkeys(PARTITION_TYPES), name: value}, "stats": stats()}
        for name, value, _ in PARTITIONS.values()
    ]
    source = write_log(tmp_path_factory.mktemp("partitions") / "t", schema, adds, partitions=list(PARTITION_TYPES))
    table = opened(spark, source)
    return table.files([column_of(table, name) for name in PARTITION_TYPES])


@pytest.mark.parametrize("case", PARTITIONS)
def test_partition_values_are_exact_or_unknown(partitioned, case):
    name, _, expected = PARTITIONS[case]
    assert expected == partitioned[list(PARTITIONS).index(case)].domains[name]
    assert partitioned.columns[name].is_partition
