"""`FAILURES.md`: each number that a test cites as "Failure catalogue N" has a row."""

from __future__ import annotations

import re
from pathlib import Path

_TESTS = Path(__file__).parent
# Comments may break a citation after any number of a list such as "31, 33 - 36, 163".
_CITATION = re.compile(r"failure catalogue,? ((?:\d+(?: - \d+)?(?:,(?: |\s+# )|(?= ?[^\d,-]|$))?)+)", re.IGNORECASE)


def _cited(text: str) -> set[int]:
    found: set[int] = set()
    for citation in _CITATION.finditer(text):
        for first, last in re.findall(r"(\d+)(?: - (\d+))?", citation[1]):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_every_cited_failure_has_a_row():
    rows = {
        int(number) for number in re.findall(r"^\| (\d+) \|", (_TESTS / "FAILURES.md").read_text("utf-8"), re.MULTILINE)
    }
    cited = {each for file in _TESTS.rglob("*.py") for each in _cited(file.read_text("utf-8"))}
    assert cited
    assert set() == cited - rows


def test_citations_of_ranges_and_lists_are_read():
    text = "# Failure catalogue 31, 33 - 35,\n# 163: partitions of 12 builds.\nprune(df)  # failure catalogue 96"
    assert {31, 33, 34, 35, 163, 96} == _cited(text)
