"""`days_of_texts`: the days whose text by a pattern of years, months and days is one of several keys.

    2024-05 by yyyy-MM: 2024-05-01 to 2024-05-31

Days before 1600 and after 9999 are always among them: their texts depend on the calendar and on the sign of the year.
A time may follow the day, as in `yyyy-MM-dd HH:mm`; it tells nothing more of the day.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from pruning.values.encoding import GREATEST, LEAST
from pruning.values.ranges import RangeSet
from pruning.values.types import ValueType

_FIRST_YEAR, _LAST_YEAR = 1600, 9999
_TOKENS = {"yyyy": r"(?P<year>[0-9]{4})", "MM": r"(?P<month>[0-9]{2})", "dd": r"(?P<day>[0-9]{2})"}
_TOKEN = re.compile("yyyy|MM|dd|[-/._ ]")
_TIME = re.compile(r"(HH|mm|ss|SSS|[-/._: ]|'T')*")
_EPOCH = dt.date(1970, 1, 1).toordinal()
# The days that patterns of so many parts leave open; a month without its year comes again.
_OPEN_DAYS = {frozenset({"yyyy"}): 365, frozenset({"yyyy", "MM"}): 31, frozenset(_TOKENS): 1}


def days_in(pattern: str) -> int:
    """About as many days have the same text; 0 for a pattern that is not understood."""
    found = _parts(pattern)
    if not _TIME.fullmatch(pattern, len(_of_day(pattern))) or len(found) > len(set(found)):
        return 0
    return _OPEN_DAYS.get(frozenset(found), 0)


def follows_days(pattern: str) -> bool:
    """True for a known pattern that begins with the year, then the month, then the day: texts of days follow them."""
    found = _parts(pattern)
    return days_in(pattern) > 0 and found == [*_TOKENS][: len(found)]


def days_of_texts(texts: Iterable[bytes], pattern: str) -> RangeSet:
    """The days with one of these texts, and those whose texts are not known."""
    read, length = _reader(_of_day(pattern)), len(_of_day(pattern))
    matches = (read.fullmatch(each[:length].decode("utf-8", "replace")) for each in texts)
    return _with_unknown(days for each in matches if each is not None and (days := _days(each)) is not None)


def days_between_texts(ranges: Iterable[tuple[bytes, bytes | None]], pattern: str) -> RangeSet:
    """The days whose texts lie in one of several ranges, and those whose texts are not known.

    The texts follow the order of days; a range without a high has no end.
    """
    part = _of_day(pattern)
    years = range(dt.date(_FIRST_YEAR, 1, 1).toordinal(), dt.date(_LAST_YEAR, 12, 31).toordinal() + 1)

    def text(day: int) -> bytes:
        date = dt.date.fromordinal(day)
        parts = {"yyyy": f"{date.year:04}", "MM": f"{date.month:02}", "dd": f"{date.day:02}"}
        return "".join(parts.get(each, each) for each in _TOKEN.findall(part)).encode()

    ends = (
        (
            bisect_left(years, low[: len(part)], key=text),
            len(years) if high is None else bisect_right(years, high[: len(part)], key=text),
        )
        for low, high in ranges
    )
    return _with_unknown((years[0] + first - _EPOCH, years[0] + end - 1 - _EPOCH) for first, end in ends)


def _with_unknown(known: Iterable[tuple[int, int]]) -> RangeSet:
    unknown = [(LEAST, _code(dt.date(_FIRST_YEAR, 1, 1)) - 1), (_code(dt.date(_LAST_YEAR, 12, 31)) + 1, GREATEST)]
    return RangeSet.of_ranges(ValueType("date"), *np.array([*known, *unknown], np.int64).T)


def _of_day(pattern: str) -> str:
    """The part of a pattern that tells the day; its texts have its length."""
    found = _TOKEN.match(pattern)
    end = 0
    while found is not None:
        end = found.end()
        found = _TOKEN.match(pattern, end)
    return pattern[:end]


def _parts(pattern: str) -> list[str]:
    return [each for each in _TOKEN.findall(_of_day(pattern)) if each in _TOKENS]


@lru_cache(maxsize=64)
def _reader(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_TOKENS.get(each) or re.escape(each) for each in _TOKEN.findall(pattern)))


def _days(match: re.Match[str]) -> tuple[int, int] | None:
    """The first and the last day of a text; None for one of no day, or of a year whose days are kept anyway."""
    parts = {name: int(each) for name, each in match.groupdict().items()}
    if not _FIRST_YEAR <= parts["year"] <= _LAST_YEAR:
        return None
    try:
        first = dt.date(parts["year"], parts.get("month", 1), parts.get("day", 1))
    except ValueError:
        return None
    if "day" in parts:
        return _code(first), _code(first)
    last_month = parts.get("month", 12)
    return _code(first), _code(dt.date(first.year, last_month, monthrange(first.year, last_month)[1]))


def _code(date: dt.date) -> int:
    return date.toordinal() - _EPOCH
