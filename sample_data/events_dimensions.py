"""The small tables beside the page views: users, campaigns, bots and a calendar."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from sample_data.events_draws import (
    BOT_AT,
    BOT_OF,
    DAYS,
    Numbers,
    chosen,
    dates,
    day_of,
    generator,
    season_of,
    signup_days,
    tenants_of_users,
    user_ids,
)

CAMPAIGNS = 400
_COUNTRIES = ["US", "DE", "IN", "BR", "FR", "GB", "JP", "PL", "SE", "IS"]
_LANGUAGES = ["en", "de", "hi", "pt", "fr", "ja", "pl", "sv"]
_INTERESTS = [["sports"], ["music", "film"], ["travel", "food"], ["games", "music"], [], ["garden", "food", "books"]]
_CHANNELS = ["email", "search", "social", "display", "affiliate"]


def users(count: int) -> pa.Table:
    """The users: tenant, country, plan, day of signing up, a struct and an array."""
    draws = generator("profiles")
    shares = draws.random((6, count))
    profile = pa.StructArray.from_arrays(
        [
            chosen(_LANGUAGES, [40, 12, 12, 10, 8, 8, 6, 4], shares[2]),
            chosen(["18-24", "25-34", "35-49", "50-64", "65+"], [15, 30, 30, 18, 7], shares[3]),
            pa.array(shares[4] < 0.6),
        ],
        ["language", "age_band", "newsletter"],
    )
    return pa.table(
        {
            "user_id": user_ids(count),
            "tenant_id": pa.array(tenants_of_users(count), pa.int32()),
            "country": chosen(_COUNTRIES, [30, 15, 15, 10, 8, 8, 6, 4, 3, 1], shares[0]),
            "plan": chosen(["free", "trial", "pro", "enterprise"], [70, 10, 15, 5], shares[1]),
            "signup_date": dates(signup_days(count)),
            "profile": profile,
            "interests": chosen(_INTERESTS, [25, 20, 20, 15, 10, 10], shares[5]),
        }
    )


def campaigns(_users: int) -> pa.Table:
    """The campaigns, each with a channel and a period of 3 to 30 days."""
    first, last = campaign_periods()
    draws = generator("campaigns")
    channels = chosen(_CHANNELS, [25, 30, 25, 15, 5], draws.random(CAMPAIGNS)).to_pylist()
    budgets = draws.integers(50_000, 5_000_000, CAMPAIGNS).tolist()
    return pa.table(
        {
            "campaign_id": pa.array(range(1, CAMPAIGNS + 1), pa.int32()),
            "name": [f"{channel}-{number:03}" for number, channel in enumerate(channels, 1)],
            "channel": channels,
            "start_date": dates(first),
            "end_date": dates(last),
            "budget": pa.array([Decimal(cents).scaleb(-2) for cents in budgets], pa.decimal128(12, 2)),
        }
    )


def campaign_periods() -> tuple[Numbers, Numbers]:
    """The numbers of the first and the last day of each campaign."""
    draws = generator("periods")
    first = draws.integers(0, DAYS - 10, CAMPAIGNS)
    return first, first + draws.integers(2, 30, CAMPAIGNS)


def bots(users: int) -> pa.Table:
    """The users that are bots, with the reason, and the day on which they were listed."""
    numbers = np.arange(BOT_AT, users, BOT_OF)
    draws = generator("bots")
    # Listed in an order that is not that of users.
    numbers = draws.permutation(numbers)
    return pa.table(
        {
            "user_id": user_ids(users).take(pa.array(numbers)),
            "reason": chosen(["crawler", "scraper", "monitoring"], [60, 25, 15], draws.random(len(numbers))),
            "listed_on": dates(draws.integers(0, DAYS, len(numbers))),
        }
    )


def calendar(_users: int) -> pa.Table:
    """All days, with their weekday (1 is Monday), and their season of sales, NULL outside of all."""
    days = [day_of(number) for number in range(DAYS)]
    return pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "year": pa.array([each.year for each in days], pa.int32()),
            "month": pa.array([each.month for each in days], pa.int32()),
            "iso_week": pa.array([each.isocalendar()[1] for each in days], pa.int32()),
            "weekday": pa.array([each.isoweekday() for each in days], pa.int32()),
            "is_weekend": pa.array([each.isoweekday() > 5 for each in days]),
            "season": pa.array([season_of(each) for each in days], pa.string()),
        }
    )
