"""A star schema of sales with two dimensions, queried in three ways."""

from __future__ import annotations

import pytest

from pruning import PruningOptions
from tests import leftovers
from tests.queries.star import OPTIONS

assert_no_leftovers = leftovers.assert_no_leftovers


@pytest.fixture(scope="module", params=["delta", "parquet"])
def star(stars, request) -> str:
    """The prefix of the views of the star schema: sales, clustered by day, with the dimensions `days` and `items`."""
    return stars(request.param)


@pytest.fixture
def pruned(ways, star):
    """The unpruned and the pruned DataFrame of a query over the star, after all three ways gave equal rows."""

    def run(query: str, options: PruningOptions = OPTIONS):
        return ways.agreed(query.format(sales=f"{star}sales", days=f"{star}days", items=f"{star}items"), options)

    return run
