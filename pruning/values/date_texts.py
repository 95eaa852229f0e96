"""`days_of_texts`: the days whose text by a pattern of years, months and days is one of several keys.

    2024-05 by yyyy-MM: 2024-05-01 to 2024-05-31

Days before 1600 and after 9999 are always among them: their texts depend on the calendar and on the sign of the year.
"""

from __future__ import annotations

import datetime as dt
import re
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
_EPOCH = dt.date(1970, 1, 1).toordinal()
# The days that patterns of so many parts leave open; a month without its year comes again.
_OPEN_DAYS = {frozenset({"yyyy"}): 365, frozenset({"yyyy", "MM"}): 31, frozenset(_TOKENS): 1}


def days_in(pattern: str) -> int:
    """About as many days have the same text; 0 for a pattern that is not understood."""
    found = [each for each in _TOKEN.findall(pattern) if each in _TOKENS]
    if "".join(_TOKEN.findall(pattern)) != pattern or len(found) > len(set(found)):
        return 0
    return _OPEN_DAYS.get(frozenset(found), 0)


def days_of_texts(texts: Iterable[bytes], pattern: str) -> RangeSet:
    """The days with one of these texts, and those whose texts are not known."""
    read = _reader(pattern)
    matches = (read.fullmatch(each.decode("utf-8", "replace")) for each in texts)
    known = [days for each in matches if each is not None and (days := _days(each)) is not None]
    unknown = [(LEAST, _code(dt.date(_FIRST_YEAR, 1, 1)) - 1), (_code(dt.date(_LAST_YEAR, 12, 31)) + 1, GREATEST)]
    return RangeSet.of_ranges(ValueType("date"), *np.array([*known, *unknown], np.int64).T)


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
