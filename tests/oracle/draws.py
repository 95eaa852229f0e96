"""Recorded random choices, from which a failing case is reproduced and simplified."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Draws:
    """Random choices of a seed, or those of `given`; after these always the first option, which is the simplest one."""

    seed: str = ""
    given: Sequence[int] | None = None
    taken: list[int] = field(default_factory=list)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - a test that can be repeated

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1."""
        at = len(self.taken)
        if self.given is None:
            number = self._random.randrange(count)
        else:
            number = self.given[at] % count if at < len(self.given) else 0
        self.taken.append(number)
        return number

    def choice(self, options: Sequence[T]) -> T:
        """One of several options."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """At most `count` of the options, in their order."""
        left = list(range(len(options)))
        picked = [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]
        return [options[at] for at in sorted(picked)]

    def chance(self, percent: int) -> bool:
        """True in `percent` of cases; False is the simpler choice."""
        return self.below(100) >= 100 - percent


def simplest(taken: Sequence[int], fails: Callable[[Sequence[int]], Sequence[int] | None], tries: int) -> list[int]:
    """Simpler choices that still fail; `fails` returns the choices that it took, or None if the case passes."""
    best = list(taken)
    for count in (len(best) // 8, len(best) // 4, len(best) // 2):
        # A failure near the beginning does not need the rest.
        tries -= 1
        found = fails(best[:count])
        if found is not None and len(found) < len(best):
            best = list(found)
            break
    width = max(1, len(best) // 2)
    while width:
        at = 0
        while at < len(best) and tries:
            for candidate in (best[:at] + best[at + width :], [*best[:at], *[0] * width, *best[at + width :]]):
                if not tries or candidate == best:
                    continue
                tries -= 1
                found = fails(candidate)
                if found is not None and (len(found), sum(found)) < (len(best), sum(best)):
                    best = list(found)
                    break
            else:
                at += width
        width //= 2
    return best
