"""A domain of keys in their own type -> the domain of column values that Spark's `=` can match with them.

The answer is a superset: what provably cannot match is dropped, and where rounding or a time zone comes in, ends
move outward. `Coerced.is_exact` says that the answer holds no value without a matching key.
"""

from __future__ import annotations

from dataclasses import dataclass

from pruning.coerce_floats import float_to_float, float_to_number, number_to_float
from pruning.coerce_moments import MOMENTS, moment_to_moment
from pruning.coerce_numbers import common_decimal_digits, number_to_number, representable
from pruning.domain import Domain
from pruning.errors import InvalidKeysError
from pruning.ranges import RangeSet
from pruning.reasons import Reason, ReasonCode
from pruning.value_type import MOST_DIGITS, ValueType


@dataclass(frozen=True, slots=True)
class Coerced:
    """The domain in the column's type, and whether each of its values matches a key."""

    domain: Domain
    is_exact: bool


def coerce(keys: Domain, column: ValueType, subject: str) -> Coerced | Reason:
    """What values of a `column` type can equal `keys`; a `Reason` where that is not known soundly.

    `InvalidKeysError` where the types are of different kinds: Spark would refuse them, or guess a cast of the
    column that leaves nothing of its statistics. `subject` names the column in messages.

    >>> int_, bigint = ValueType("int"), ValueType("bigint")
    >>> print(coerce(Domain.of(bigint, 7, 3000000000), int_, "`sk`").domain)
    {7}
    """
    source = keys.type
    if source == column:
        return Coerced(keys, is_exact=True)
    if source.is_exact_number and column.is_exact_number and common_decimal_digits(source, column) > MOST_DIGITS:
        return Reason(ReasonCode.INEXACT_CAST, subject, f"{source} and {column} have no common decimal type")
    # Keys are values of their own type, so an open end is that type's end.
    ranges, is_exact = _matches(keys.ranges.intersect(representable(source)), column, subject)
    return Coerced(Domain(ranges, keys.null, keys.nan and column.is_float), is_exact)


def _matches(keys: RangeSet, column: ValueType, subject: str) -> tuple[RangeSet, bool]:
    source = keys.type
    match (source, column):
        case _ if source.is_exact_number and column.is_exact_number:
            return number_to_number(keys, column)
        case _ if source.is_exact_number and column.is_float:
            return number_to_float(keys, column)
        case _ if source.is_float and column.is_exact_number:
            return float_to_number(keys, column)
        case _ if source.is_float and column.is_float:
            return float_to_float(keys, column)
        case _ if source.name in MOMENTS and column.name in MOMENTS:
            return moment_to_moment(keys, column)
        case _:
            msg = f"Cannot compare keys of {source} with column {subject} of {column}: cast the keys to {column} first"
            raise InvalidKeysError(msg)
