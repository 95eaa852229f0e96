"""`Estimate`: an expected number between a low and a high one, by what is known of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that is `expected`, and that should lie between `low` and `high`.

    >>> print(Estimate(1.0, 2.0, 4.0) + Estimate.exact(0.5))
    2.5 s (1.5 to 4.5)
    """

    low: float
    expected: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.expected <= self.high:
            msg = f"Cannot estimate {self.expected}: expected a number from {self.low} to {self.high}"
            raise ValueError(msg)

    @staticmethod
    def exact(value: float) -> Estimate:
        """A number that is known."""
        return Estimate(value, value, value)

    @staticmethod
    def around(low: float, expected: float, high: float) -> Estimate:
        """The numbers in order: `low` and `high` give way to `expected`."""
        return Estimate(min(low, expected), expected, max(high, expected))

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.low - other.high, self.expected - other.expected, self.high - other.low)

    def __mul__(self, factor: float) -> Estimate:
        """This number times a factor of at least 0."""
        return Estimate(self.low * factor, self.expected * factor, self.high * factor)

    def __str__(self) -> str:
        """The text of a number of seconds, with its bounds where they differ."""
        expected, low, high = (short(each) for each in (self.expected, self.low, self.high))
        return f"{expected} s" if low == high else f"{expected} s ({low} to {high})"


ZERO = Estimate.exact(0.0)


def short(value: float) -> str:
    """A number of seconds in two digits.

    >>> short(0.123), short(1.84), short(12.3), short(0.0004)
    ('0.12', '1.8', '12', '0.0004')
    """
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
