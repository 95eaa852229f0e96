"""The page views of one day: sessions are drawn first, then the views of each session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sample_data.events_dimensions import campaign_periods
from sample_data.events_draws import (
    BOT_AT,
    BOT_OF,
    DAYS,
    Numbers,
    chosen,
    dates,
    day_of,
    generator,
    hexadecimal,
    places,
    season_of,
    signed_up,
    strings,
    tenants_of_users,
    user_ids,
)

_PAGES = 2_000
_SECTIONS = ["home", "search", "product", "cart", "checkout", "account", "blog"]
_SECTION_WEIGHTS = [18.0, 15.0, 40.0, 9.0, 4.0, 6.0, 8.0]
_CHECKOUT = _SECTIONS.index("checkout")
_TAGS = ["new", "sale", "video", "review", "bundle", "gift", "eco", "outlet", "premium", "local"]
_DEVICES = [
    *({"os": "android", "browser": each, "is_mobile": True} for each in ("chrome", "firefox", "samsung")),
    *({"os": "ios", "browser": each, "is_mobile": True} for each in ("safari", "chrome")),
    *({"os": "windows", "browser": each, "is_mobile": False} for each in ("chrome", "edge", "firefox")),
    *({"os": "macos", "browser": each, "is_mobile": False} for each in ("safari", "chrome")),
    {"os": "linux", "browser": "firefox", "is_mobile": False},
]
_DEVICE_WEIGHTS = [26.0, 3.0, 6.0, 18.0, 4.0, 18.0, 8.0, 3.0, 7.0, 5.0, 2.0]
_PROPERTIES = pa.array(
    [
        [("variant", variant), ("lang", lang), *([("referrer", referrer)] if referrer else [])]
        for variant in ("control", "a", "b")
        for lang in ("en", "de", "fr", "ja")
        for referrer in ("", "news", "partner")
    ],
    pa.map_(pa.string(), pa.string()),
)
_STATUSES, _STATUS_WEIGHTS = [200, 304, 404, 500], [93.0, 4.0, 2.0, 1.0]
_VIEWS_PER_SESSION, _VIEWS_PER_BOT_SESSION = 5, 20
_SHARE_OF_BOTS, _SHARE_OF_CAMPAIGNS, _SHARE_LATE = 0.04, 0.25, 0.1
_SECONDS_BETWEEN_VIEWS = 40.0
_MICROSECONDS = 1_000_000
_LAST_MICROSECOND = 86_400 * _MICROSECONDS - 1
_DEVICE = pa.struct([("os", pa.string()), ("browser", pa.string()), ("is_mobile", pa.bool_())])
_PAGE = pa.struct([("section", pa.string()), ("path", pa.string()), ("position", pa.int32())])

SCHEMA = pa.schema(
    [
        ("view_id", pa.int64()),
        ("event_date", pa.date32()),
        ("event_time", pa.timestamp("us")),
        ("tenant_id", pa.int32()),
        ("user_id", pa.string()),
        ("session_id", pa.string()),
        ("campaign_id", pa.int32()),
        ("page", _PAGE),
        ("device", _DEVICE),
        ("tags", pa.list_(pa.string())),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("status", pa.int32()),
        ("duration_ms", pa.int32()),
        ("revenue", pa.decimal128(9, 2)),
    ]
)


@dataclass(frozen=True, slots=True)
class _Sessions:
    """Sessions of a day; NULL campaigns are 0, times are microseconds of the day."""

    users: Numbers
    views: Numbers
    begins: Numbers
    campaigns: Numbers


class Days:
    """The page views of any day, for numbers of users and of views of all days."""

    def __init__(self, users: int, views: int) -> None:
        self._users = users
        self._ids, self._tenants = user_ids(users), tenants_of_users(users)
        self._first, self._last = campaign_periods()
        self._paths, self._path_tags = _paths(), _path_tags()
        ends = np.cumsum([_weight(day) for day in range(DAYS)])
        self._begins = np.concatenate([[0], np.floor(ends / ends[-1] * views + 0.5)]).astype(np.int64)

    def table(self, day: int) -> pa.Table:
        """The views of a day, by its number, in the order of time."""
        first, rows = int(self._begins[day]), int(self._begins[day + 1] - self._begins[day])
        sessions = self._sessions(day, rows)
        draws = generator("views", day)
        # The session of each view, and the place of the view in it.
        session = np.repeat(np.arange(len(sessions.views)), sessions.views)
        place = np.arange(rows) - np.repeat(np.cumsum(sessions.views) - sessions.views, sessions.views)
        gaps = np.where(place == 0, 0.0, draws.exponential(_SECONDS_BETWEEN_VIEWS * _MICROSECONDS, rows))
        since = np.cumsum(gaps)
        since -= np.repeat(since[np.cumsum(sessions.views) - sessions.views], sessions.views)
        times = np.minimum(sessions.begins[session] + since.astype(np.int64), _LAST_MICROSECOND)
        order = np.argsort(times, kind="stable")
        session, place, times = session[order], place[order], times[order]
        user = sessions.users[session]
        section = np.where(place == 0, 0, places(_SECTION_WEIGHTS, draws.random(rows)))
        page = np.floor(_PAGES * draws.random(rows) ** 3).astype(np.int64)
        by_session = pa.array(session)
        named = generator("sessions", day)
        ids = strings(hexadecimal(np.frombuffer(named.bytes(8 * len(sessions.views)), np.uint8).reshape(-1, 8)))
        devices = chosen(_DEVICES, _DEVICE_WEIGHTS, named.random(len(sessions.views)))
        properties = _PROPERTIES.take(pa.array(named.integers(0, len(_PROPERTIES), len(sessions.views))))
        campaign = sessions.campaigns[session]
        columns = {
            "view_id": pa.array(first + np.arange(rows)),
            "event_date": dates(np.full(rows, day, np.int64)),
            "event_time": _timestamps(day, times),
            "tenant_id": pa.array(self._tenants[user].astype(np.int32)),
            "user_id": self._ids.take(pa.array(user)),
            "session_id": ids.take(by_session),
            "campaign_id": pa.array(campaign.astype(np.int32), mask=campaign == 0),
            "page": self._page(section, page, place),
            "device": devices.take(by_session),
            "tags": self._path_tags.take(pa.array(page)),
            "properties": properties.take(by_session),
            "status": chosen(_STATUSES, _STATUS_WEIGHTS, draws.random(rows)).cast(pa.int32()),
            "duration_ms": pa.array(draws.gamma(1.5, 8_000.0, rows).astype(np.int32)),
            "revenue": _revenue((section == _CHECKOUT) & (draws.random(rows) < 0.6), draws),
        }
        return pa.table(columns).cast(SCHEMA)

    def _sessions(self, day: int, rows: int) -> _Sessions:
        """Sessions with `rows` views in all."""
        draws = generator("day", day)
        count = 10 + rows // 2
        is_bot = draws.random(count) < _SHARE_OF_BOTS
        mean = np.where(is_bot, _VIEWS_PER_BOT_SESSION, _VIEWS_PER_SESSION)
        views = draws.geometric(1.0 / mean).astype(np.int64)
        ends = np.minimum(np.cumsum(views), rows)
        views = np.diff(ends, prepend=0)
        kept = int(np.searchsorted(ends, rows)) + 1 if rows else 0
        known = signed_up(self._users, day)
        # Those who signed up lately come more often than others.
        users = known - 1 - np.floor(known * draws.random(count) ** 2).astype(np.int64)
        listed = len(range(BOT_AT, known, BOT_OF))
        if listed:
            users = np.where(is_bot, BOT_AT + BOT_OF * draws.integers(0, listed, count), users)
        # Most sessions begin in the middle of the day.
        begins = np.floor((draws.random(count) + draws.random(count)) / 2 * _LAST_MICROSECOND).astype(np.int64)
        campaigns = self._campaigns(day, draws, count)
        return _Sessions(users[:kept], views[:kept], begins[:kept], campaigns[:kept])

    def _campaigns(self, day: int, draws: np.random.Generator, count: int) -> Numbers:
        """The campaign from which each session comes, 0 for none: mostly one of the day, seldom an earlier one."""
        running = 1 + np.flatnonzero((self._first <= day) & (day <= self._last))
        earlier = 1 + np.flatnonzero(self._last < day)
        late = draws.random(count) < _SHARE_LATE
        shares, has = draws.random(count), draws.random(count) < _SHARE_OF_CAMPAIGNS
        found = np.zeros(count, np.int64)
        for numbers, of in ((running, has & ~late), (earlier, has & late)):
            if len(numbers):
                found = np.where(of, numbers[np.floor(shares * len(numbers)).astype(np.int64)], found)
        return found

    def _page(self, section: Numbers, page: Numbers, place: Numbers) -> pa.Array:
        return pa.StructArray.from_arrays(
            [
                pa.array(_SECTIONS).take(pa.array(section)),
                self._paths.take(pa.array(page)),
                pa.array(place.astype(np.int32)),
            ],
            fields=list(_PAGE),
        )


def _weight(day: int) -> float:
    """The share of a day in all views: more on workdays, in seasons of sales, and with time."""
    date = day_of(day)
    return (1.25 if date.isoweekday() <= 5 else 1.0) * (1.6 if season_of(date) else 1.0) * (1.0 + day / (2 * DAYS))


def _paths() -> pa.Array:
    return pa.array([f"/{number % 37:02}/page-{number:04}" for number in range(_PAGES)])


def _path_tags() -> pa.Array:
    """Up to three tags for each path."""
    draws = generator("tags")
    count = draws.integers(0, 4, _PAGES)
    return pa.array(
        [sorted(draws.choice(_TAGS, each, replace=False).tolist()) for each in count], pa.list_(pa.string())
    )


def _timestamps(day: int, times: Numbers) -> pa.Array:
    midnight = np.datetime64(day_of(day)).astype("datetime64[us]").astype(np.int64)
    return pa.array(midnight + times).cast(pa.timestamp("us"))


def _revenue(is_sale: npt.NDArray[np.bool_], draws: np.random.Generator) -> pa.Array:
    """Amounts where there is a sale, else NULL."""
    cents = (100 * draws.gamma(2.0, 30.0, len(is_sale)) + 99).astype(np.int64)
    # A decimal of Arrow is an integer of 16 bytes.
    words = np.stack([cents, np.zeros_like(cents)], axis=1)
    amounts = pa.Array.from_buffers(pa.decimal128(9, 2), len(cents), [None, pa.py_buffer(words)])
    return pc.if_else(pa.array(is_sale), amounts, pa.scalar(None, pa.decimal128(9, 2)))
