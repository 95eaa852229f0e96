"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with a line feed at the end of each of its lines.

    >>> print(markdown_table(("a", "b"), [("1", "2")]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    every = (header, ("---",) * len(header), *lines)
    return "".join(f"| {' | '.join(line)} |\n".replace(" --- ", "---") for line in every)
