"""Small Arrow tables of edge-case values and names that break pruning code; README.md explains each table.

Every table has a column `id` that numbers its rows from 0, so that answers can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=38)

INT_WIDTHS: Mapping[str, int] = {"byte": 8, "short": 16, "int": 32, "long": 64}

INSTANTS: tuple[str | None, ...] = (
    None,
    *("0001-01-01T00:00:00.000000", "0001-01-01T00:00:00.000001"),
    # The last Julian and the first Gregorian day: rebasing shifts everything before the second.
    *("1582-10-04T23:59:59.999999", "1582-10-15T00:00:00.000000"),
    # Local mean time: zones were off by odd minutes and seconds.
    *("1850-06-01T12:34:56.789012", "1883-11-18T17:03:58.000000", "1893-03-31T23:06:32.000000"),
    *("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000000", "1970-01-01T00:00:00.000001"),
    # Inside one millisecond: statistics in a Delta log are cut there.
    *("2020-01-01T00:00:00.123000", "2020-01-01T00:00:00.123001", "2020-01-01T00:00:00.123999"),
    # New York and Berlin skip an hour, then repeat one.
    *("2024-03-10T06:59:59.999999", "2024-03-10T07:00:00.000000", "2024-03-31T01:00:00.000000"),
    *("2024-10-27T00:30:00.000000", "2024-10-27T01:30:00.000000"),
    *("2024-11-03T05:30:00.000000", "2024-11-03T06:30:00.000000"),
    # Outside the range of 64-bit nanoseconds.
    *("1677-09-21T00:12:43.145224", "2262-04-11T23:47:16.854776"),
    "9999-12-31T23:59:59.999999",
)

DATES: tuple[date | None, ...] = (
    None,
    *(date(1, 1, 1), date(1, 1, 2), date(1582, 10, 4), date(1582, 10, 15), date(1900, 2, 28)),
    *(date(1969, 12, 31), date(1970, 1, 1), date(2000, 2, 29), date(2024, 2, 29), date(9999, 12, 31)),
)

FLOATS: tuple[float | None, ...] = (
    None,
    *(float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, -1.5),
    # Smallest subnormal and largest finite number of both widths, and integers beyond which not all are exact.
    *(5e-324, 2.0**-149, 3.4028234663852886e38, 1.7976931348623157e308, 16777217.0, 9007199254740992.0),
)

STRINGS: tuple[str | None, ...] = (
    None,
    *("", " ", "a", "A", "a ", "\u00e4", "a\u0308", "\u00df", "ss", "\u0130", "i"),
    # Above U+FFFF: after U+FF5E by bytes and by code point, before it by UTF-16 units, as Java compares.
    *("\uff5e", "\U0001f600", "\U0001f600\U0001f601", "\U0010ffff", "\uffff", "\ud7ff"),
    *("\x00", "a\x00", "a\x00b", "\x7f", "\n", "'", '"', "`", "\\", "%", "_", "$1", "; DROP TABLE t; --"),
    # Strings that agree in their first 32 characters, the prefix that a Delta log keeps.
    *("p" * 32, "p" * 32 + "a", "p" * 32 + "b", "p" * 31 + "\U0010ffff" + "z", "\U0010ffff" * 33),
    "long " * 2_000,
    "null",
    "__HIVE_DEFAULT_PARTITION__",
)

BINARIES: tuple[bytes | None, ...] = (
    *(None, b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"a", b"a\x00", bytes(range(256))),
)

DECIMAL_TYPES: tuple[tuple[int, int], ...] = ((1, 0), (7, 2), (9, 9), (18, 0), (19, 1), (38, 0), (38, 18), (38, 38))

# Delta refuses ` ,;{}()\n\t=` in names unless the table maps its columns.
COLUMN_NAMES: tuple[str, ...] = (
    *("a.b", "a", "b c", "UPPER", "tick`tick", "it's", 'say "x"', "semi;colon", "new\nline", "tab\there"),
    *("../up", "per%cent", "x=1", "(paren)", "{brace}", "comma,", "\u00e4\U0001f600", "select", "1", " edge "),
    *("_metadata", "a.`b`.c", "1=1) OR (1=1", "\\d"),
)

PARTITION_VALUES: tuple[str | None, ...] = (
    *(None, "a", "A", "b c", "a/b", "a=b", "a%2Fb", "%", "100%", "..", ".", "a:b", "a#b?c", "it's", '"', "{x}"),
    *("new\nline", "\u00e4", "\U0001f600", " edge ", "null", "2024-01-01", "01", "1", "tick`tick", "[a]*", "~"),
)


def tables() -> Mapping[str, pa.Table]:
    """All tables of the catalogue by name; the values are the same on every call."""
    return {name: make() for name, make in _TABLES.items()}


def integers() -> pa.Table:
    """Signed widths: both ends, their neighbours, the ends of the next smaller width, NULL."""
    return _numbered({name: pa.array(_edges(bits), f"int{bits}") for name, bits in INT_WIDTHS.items()})


def unsigned() -> pa.Table:
    """Unsigned widths, which only Parquet has: their upper halves are negative when read as signed."""
    return _numbered(
        {
            f"u{bits}": pa.array([None, 0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1], f"uint{bits}")
            for bits in INT_WIDTHS.values()
        }
    )


def floats() -> pa.Table:
    """Both widths: NULL, NaN, both zeros, both infinities, subnormals, the largest exact integers."""
    # Arrow's cast turns numbers too large for a float into infinity.
    wide = pa.array(FLOATS, pa.float64())
    return _numbered({"float": wide.cast(pa.float32(), safe=False), "double": wide})


def decimals() -> pa.Table:
    """Both ends, both units, zero and NULL at several precisions and scales."""
    columns: dict[str, pa.Array] = {}
    for precision, scale in DECIMAL_TYPES:
        values = [
            None if unscaled is None else Decimal(unscaled).scaleb(-scale, _EXACT)
            for unscaled in (None, -(10**precision) + 1, -1, 0, 1, 10**precision - 1)
        ]
        columns[f"d{precision}_{scale}"] = pa.array(values, pa.decimal128(precision, scale))
    return _numbered(columns)


def strings() -> pa.Table:
    """Strings whose order, prefix, escape or equality goes wrong easily."""
    return _numbered({"word": pa.array(STRINGS, pa.string())})


def binaries() -> pa.Table:
    """Byte strings: empty, NUL, above 0x7f (negative as signed bytes), every byte once."""
    return _numbered({"bytes": pa.array(BINARIES, pa.binary())})


def booleans() -> pa.Table:
    """NULL, false and true."""
    return _numbered({"flag": pa.array([None, False, True], pa.bool_())})


def dates() -> pa.Table:
    """Days at calendar changes, at the epoch, and the first and last that Spark can hold."""
    return _numbered({"day": pa.array(DATES, pa.date32())})


def timestamps() -> pa.Table:
    """Instants and wall-clock times of equal microseconds."""
    micros = [None if text is None else _microseconds(text) for text in INSTANTS]
    ntz = pa.array(micros, pa.timestamp("us"))
    return _numbered({"at": ntz.cast(pa.timestamp("us", tz="UTC")), "wall_clock": ntz})


def all_null() -> pa.Table:
    """One column per family of types, with no value at all."""
    types = {"int": pa.int32(), "double": pa.float64(), "word": pa.string(), "day": pa.date32()}
    return _numbered({name: pa.nulls(3, data_type) for name, data_type in types.items()})


def empty() -> pa.Table:
    """The columns of `all_null`, without rows."""
    return all_null().slice(0, 0)


def hostile_names() -> pa.Table:
    """Int columns under names that need quoting; the nth holds n, n + 1 and n + 2, so that a mix-up shows."""
    return _numbered({name: pa.array([n, n + 1, n + 2], pa.int32()) for n, name in enumerate(COLUMN_NAMES)})


def partitions() -> pa.Table:
    """Values to partition by: Hive's folder names escape some of them, and some look like other types."""
    return _numbered({"part": pa.array(PARTITION_VALUES, pa.string())})


def nested() -> pa.Table:
    """A struct in a struct beside a flat column whose name reads like its path; NULL on each level."""
    inner = pa.struct([("k", pa.int32()), ("x.y", pa.string())])
    rows = [
        {"inner": {"k": 1, "x.y": "one"}},
        {"inner": {"k": None, "x.y": None}},
        {"inner": None},
        None,
        {"inner": {"k": 2, "x.y": "two"}},
    ]
    return _numbered(
        {
            "outer": pa.array(rows, pa.struct([("inner", inner)])),
            "outer.inner.k": pa.array([10, 20, 30, 40, 50], pa.int32()),
            "list": pa.array([[1, 2], [], None, [None], [3]], pa.list_(pa.int32())),
        }
    )


def _numbered(columns: Mapping[str, pa.Array]) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"id": pa.array(range(rows), pa.int64()), **columns})


def _edges(bits: int) -> Sequence[int | None]:
    top, half = 2 ** (bits - 1), 2 ** (bits // 2 - 1)
    return (None, -top, -top + 1, -half - 1, -half, -1, 0, 1, half - 1, half, top - 2, top - 1)


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND


_TABLES: Mapping[str, Callable[[], pa.Table]] = {
    make.__name__: make
    for make in (
        *(integers, unsigned, floats, decimals, strings, binaries, booleans, dates, timestamps),
        *(all_null, empty, hostile_names, partitions, nested),
    )
}
