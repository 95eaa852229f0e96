"""`key_path`: which functions of a column are recognised, from the expressions of Spark's optimised plans."""

from __future__ import annotations

import pytest

from pruning.query.key_functions import KeyPath, key_path, probed_column
from pruning.query.lineage import computed
from pruning.query.plan import Expression
from pruning.reasons import Reason, ReasonCode
from pruning.values.functions import functions_sql
from pruning.values.types import ValueType
from tests.pruning.plans import call, column

AT, DAY, ID, CODE = column(0, "timestamp"), column(1, "date"), column(2, "bigint"), column(3, "string")
LOCAL, SMALL, WEIGHT = column(4, "timestamp_ntz"), column(5, "int"), column(6, "double")
PRICE = column(7, "decimal(12,2)")


def text(value: str) -> Expression:
    return Expression("Literal", (), None, "string", value)


def number(value: str, type_: str = "int") -> Expression:
    return Expression("Literal", (), None, type_, value)


def cast(inner: Expression, type_: str) -> Expression:
    return call("Cast", inner, type_=type_)


OTHERWISE = "CASE WHEN x IS NULL THEN 'none' WHEN x IS NOT NULL THEN x END"
RECOGNISED = [
    (cast(AT, "date"), "CAST(x AS DATE)", "date"),
    (cast(LOCAL, "date"), "CAST(x AS DATE)", "date"),
    (call("TruncTimestamp", text("hour"), AT), "date_trunc('hour', x)", "timestamp"),
    (call("TruncTimestamp", text("DD"), AT), "date_trunc('DD', x)", "timestamp"),
    (call("TruncDate", DAY, text("mm")), "trunc(x, 'mm')", "date"),
    (call("Year", cast(AT, "date")), "year(CAST(x AS DATE))", "int"),
    (call("UnixTimestamp", AT, text("yyyy")), "unix_timestamp(x)", "bigint"),
    (call("DateSub", DAY, number("3")), "date_add(x, -3)", "date"),
    (call("TimestampAddInterval", AT, number("-60000000", "")), "x + -60000000 microseconds", "timestamp"),
    (call("Add", number("5", "bigint"), ID), "x + 5", "bigint"),
    (call("Subtract", ID, number("5", "bigint")), "x + -5", "bigint"),
    (call("IntegralDivide", cast(SMALL, "bigint"), number("1000", "bigint")), "x DIV 1000", "bigint"),
    (call("Floor", call("Divide", cast(ID, "double"), number("7.5", "double"))), "floor(x / 7.5)", "bigint"),
    (call("UnixMillis", AT), "unix_millis(x)", "bigint"),
    (call("LastDay", DAY), "last_day(x)", "date"),
    (cast(AT, "timestamp_ntz"), "CAST(x AS TIMESTAMP_NTZ)", "timestamp_ntz"),
    (
        call("TruncTimestamp", text("DAY"), cast(LOCAL, "timestamp")),
        "date_trunc('DAY', CAST(x AS TIMESTAMP))",
        "timestamp",
    ),
    (call("TimestampAddInterval", LOCAL, number("60", "")), "x + 60 microseconds", "timestamp_ntz"),
    (call("UnaryMinus", SMALL), "-x", "int"),
    (call("Subtract", number("5", "bigint"), ID), "(-x) + 5", "bigint"),
    (call("Multiply", number("2", "bigint"), ID), "x * 2", "bigint"),
    (call("Multiply", ID, number("2", "bigint")), "x * 2", "bigint"),
    (cast(ID, "int"), "CAST(x AS INT)", "int"),
    (call("Ceil", call("Divide", cast(ID, "double"), number("7.5", "double"))), "ceil(x / 7.5)", "bigint"),
    (call("Floor", PRICE), "floor(x)", "decimal(11,0)"),
    (call("Ceil", PRICE), "ceil(x)", "decimal(11,0)"),
    (cast(SMALL, "string"), "CAST(x AS STRING)", "string"),
    (cast(DAY, "string"), "date_format(x, 'yyyy-MM-dd')", "string"),
    (call("DateFormatClass", AT, text("yyyyMM")), "date_format(CAST(x AS DATE), 'yyyyMM')", "string"),
    (call("Substring", CODE, number("1"), number("3")), "substring(x, 1, 3)", "string"),
    (call("Substring", CODE, number("0"), number("3")), "substring(x, 1, 3)", "string"),
    (call("Coalesce", ID, number("0", "bigint")), "coalesce(x, 0)", "bigint"),
    (call("Coalesce", cast(AT, "date"), number("1970-01-01", "date")), "coalesce(CAST(x AS DATE), 1970-01-01)", "date"),
    (call("If", call("IsNull", CODE), CODE, text("none")), "if(x IS NULL, x, 'none')", "string"),
    (call("CaseWhen", call("IsNull", CODE), text("none"), call("IsNotNull", CODE), CODE), OTHERWISE, "string"),
    (
        call("CaseWhen", call("IsNull", CODE), CODE, text("none")),
        "CASE WHEN x IS NULL THEN x ELSE 'none' END",
        "string",
    ),
    (call("CaseWhen", call("IsNull", SMALL), number("None"), SMALL), "CASE WHEN x IS NULL THEN NULL ELSE x END", "int"),
]


@pytest.mark.parametrize(("key", "sql", "type_"), RECOGNISED, ids=lambda each: each if isinstance(each, str) else "")
def test_functions_of_the_table(key, sql, type_):
    path = key_path(key)
    assert path is not None
    assert (sql, ValueType.parse(type_)) == (functions_sql(path.functions, "x"), path.type)
    assert key.columns == {path.column}
    # The keys of a function are no values of the column.
    assert probed_column(key) is None


@pytest.mark.parametrize(
    "key",
    [
        call("Month", DAY),
        call("TruncTimestamp", column(7, "string", "DAY"), AT),
        call("TruncDate", DAY, column(7, "string", "MM")),
        call("DateFormatClass", AT, column(7, "string", "yyyy")),
        call("TruncTimestamp", text("decade"), AT),
        call("TruncDate", DAY, text("DAY")),
        call("DateFormatClass", AT, text("yyyy-MM-dd hh")),
        call("Year", AT),
        call("UnixTimestamp", CODE, text("yyyy")),
        call("LastDay", AT),
        call("UnaryMinus", WEIGHT),
        call("Multiply", ID, number("0", "bigint")),
        call("Multiply", ID, ID),
        call("Ceil", WEIGHT),
        call("Floor", column(7, "decimal(20,2)")),
        call("Subtract", number("None", "bigint"), ID),
        call("DateAdd", DAY, SMALL),
        call("TimestampAddInterval", AT, number("1 days", "interval")),
        call("Add", ID, column(7, "bigint")),
        call("Add", WEIGHT, number("1.0", "double")),
        call("Add", ID, number("9223372036854775807", "bigint")),
        call("IntegralDivide", ID, number("0", "bigint")),
        call("IntegralDivide", ID, number("-7", "bigint")),
        call("IntegralDivide", number("7", "bigint"), ID),
        call("Floor", call("Divide", WEIGHT, number("7.0", "double"))),
        call("Floor", call("Divide", cast(ID, "double"), number("-7.0", "double"))),
        call("Floor", call("Divide", cast(ID, "double"), number("NaN", "double"))),
        call("Substring", CODE, number("2"), number("3")),
        call("Substring", CODE, number("1"), number("0")),
        call("Substring", CODE, number("1"), SMALL),
        cast(CODE, "bigint"),
        cast(CODE, "date"),
        cast(AT, "string"),
        cast(WEIGHT, "string"),
        call("Year", column(7, "interval")),
        call("Coalesce", ID, column(7, "bigint")),
        call("Coalesce", ID, number("0", "int")),
        call("Coalesce", number("0", "bigint"), number("1", "bigint")),
        call("Coalesce", AT, column(8, "timestamp")),
        call("If", call("IsNull", ID), CODE, cast(ID, "string")),
        call("CaseWhen", call("IsNull", ID), CODE, call("IsNull", AT), column(7, "string")),
    ],
    ids=str,
)
def test_other_keys_reach_no_column(key):
    assert key_path(key) is None


def test_conditions_of_a_choice_may_be_of_any_column():
    key = call("CaseWhen", call("GreaterThan", ID, number("0")), SMALL, call("IsNull", AT), number("7"))
    path = key_path(key)
    assert path is not None
    assert "CASE WHEN k > 0 THEN k WHEN k IS NULL THEN 7 END" == str(key)
    assert "CASE WHEN k > 0 THEN n WHEN k IS NULL THEN 7 END" == functions_sql(path.functions, "n")
    assert (5, (7,)) == (path.column, path.functions[0].constants)


def test_a_column_is_its_own_path():
    assert KeyPath(2, ValueType("bigint")) == key_path(ID)
    assert KeyPath(9, None) == key_path(column(9, "map<int,int>"))
    assert 5 == probed_column(cast(SMALL, "bigint"))


# Expressions of the engine, and the SQL for which it made them.
WRITTEN = (
    (call("StringLPad", cast(ID, "string"), number("4"), text("0")), "lpad(CAST(k AS string), 4, '0')"),
    (call("UnaryMinus", call("Add", ID, number("1"))), "-(k + 1)"),
    (call("Not", call("IsNull", CODE)), "NOT (k IS NULL)"),
    (call("Coalesce", ID, number("None", "void")), "coalesce(k, NULL)"),
    (call("CollationKey", CODE), "k"),
    (Expression("objects.StaticInvoke", (CODE, number("6")), text="readSidePadding"), "k"),
    (Expression("objects.StaticInvoke", (CODE, text("utf-8")), text="encode"), "encode(k, 'utf-8')"),
    (call("In", ID, number("1"), number("2")), "k IN (1, 2)"),
)


@pytest.mark.parametrize(("key", "sql"), WRITTEN, ids=[sql for _, sql in WRITTEN])
def test_an_expression_is_named_in_sql(key, sql):
    assert sql == str(key)


@pytest.mark.parametrize(
    ("at", "code"), [(4, ReasonCode.COLLATED), (5, ReasonCode.CHAR_PADDED), (6, ReasonCode.COMPUTED)]
)
def test_the_cause_is_what_the_engine_makes_of_a_column(at, code):
    assert Reason(code, str(WRITTEN[at][0])) == computed(WRITTEN[at][0])
