"""Random draws of the page views: seeds, days, users and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FIRST_DAY = date(2024, 1, 1)
DAYS = 400
_EPOCH_DAY = np.datetime64(FIRST_DAY).astype("datetime64[D]").astype(np.int64)
# The first and the last day of each season of sales.
SEASONS: Mapping[str, tuple[date, date]] = MappingProxyType(
    {
        "easter": (date(2024, 3, 28), date(2024, 4, 1)),
        "summer_sale": (date(2024, 7, 15), date(2024, 7, 21)),
        "black_friday": (date(2024, 11, 28), date(2024, 12, 2)),
        "christmas": (date(2024, 12, 18), date(2024, 12, 26)),
        "winter_sale": (date(2025, 1, 6), date(2025, 1, 12)),
    }
)
TENANTS = 1_000
_SEED = 20240101
_USERS_PER_SCALE = 100_000
# A third of the users signed up in these days before the first day.
DAYS_BEFORE = 200
# Bots are the users with this remainder of their number.
BOT_OF, BOT_AT = 199, 7
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)

Numbers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]


def generator(purpose: str, day: int = 0) -> np.random.Generator:
    """The random numbers for one purpose and day."""
    return np.random.default_rng([_SEED, *purpose.encode(), day])


def day_of(number: int) -> date:
    """The date of a day by its number, from 0 on."""
    return FIRST_DAY + timedelta(days=number)


def season_of(day: date) -> str | None:
    """The season of sales of a day, None outside of all."""
    return next((name for name, (first, last) in SEASONS.items() if first <= day <= last), None)


def user_count(scale: float) -> int:
    """The number of users."""
    return round(_USERS_PER_SCALE * scale)


def signed_up(users: int, day: int) -> int:
    """The number of users who have signed up by the end of a day; users are numbered in the order of signing up."""
    return min(users, 1 + users * (DAYS_BEFORE + day) // (DAYS_BEFORE + DAYS))


def signup_days(users: int) -> Numbers:
    """The day of signing up by user, negative before the first day."""
    days = np.arange(-DAYS_BEFORE, DAYS)
    counts = np.minimum(users, 1 + users * (DAYS_BEFORE + days) // (DAYS_BEFORE + DAYS))
    places = np.searchsorted(counts, np.arange(users), side="right").clip(max=len(days) - 1)
    found: Numbers = days[places].astype(np.int64)
    return found


def user_ids(users: int) -> pa.Array:
    """The UUIDs of the first users."""
    drawn = np.frombuffer(generator("users").bytes(16 * users), np.uint8).reshape(users, 16).copy()
    # The bits of version 4.
    drawn[:, 6] = (drawn[:, 6] & 0x0F) | 0x40
    drawn[:, 8] = (drawn[:, 8] & 0x3F) | 0x80
    return uuids(drawn)


def tenants_of_users(users: int) -> Numbers:
    """The tenant of each user, from 1 on; the n-th largest tenant has 1/n of the users of the largest."""
    shares = np.cumsum(1.0 / np.arange(1, TENANTS + 1))
    found: Numbers = 1 + np.searchsorted(shares, generator("tenants").random(users) * shares[-1])
    return found


def dates(days: Numbers) -> pa.Array:
    """Dates by numbers of days; 0 is the first."""
    return pa.array((days + _EPOCH_DAY).astype(np.int32)).cast(pa.date32())


def uuids(drawn: npt.NDArray[np.uint8]) -> pa.Array:
    """The texts of UUIDs from rows of 16 bytes."""
    digits = np.full((len(drawn), 36), ord("-"), np.uint8)
    digits[:, [at for at in range(36) if at not in {8, 13, 18, 23}]] = hexadecimal(drawn)
    return strings(digits)


def hexadecimal(drawn: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The hexadecimal digits of rows of bytes, as rows of ASCII codes."""
    return _HEX[np.stack([drawn >> 4, drawn & 0x0F], axis=-1).reshape(len(drawn), -1)]


def strings(codes: npt.NDArray[np.uint8]) -> pa.Array:
    """Strings of equal lengths from rows of ASCII codes."""
    length = codes.shape[1]
    offsets = np.arange(len(codes) + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(codes)))


def chosen(values: list[Any], weights: list[float], shares: Shares) -> pa.Array:
    """A value for each of `shares`, numbers from 0 to 1; values have weights."""
    return pa.array(values).take(pa.array(places(weights, shares)))


def places(weights: list[float], shares: Shares) -> Numbers:
    """The position in `weights` for each of `shares`, numbers from 0 to 1."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends / ends[-1], shares, side="right").clip(max=len(weights) - 1).astype(np.int64)
