"""The tiers of the test suite: complete together, and repeatable."""

from __future__ import annotations

from tests.tiers import Case, drawn_cases, quick_cases


def cases(function: str, count: int, quick: int | None = 1) -> list[Case]:
    return [Case(f"{function}[{at}]", function, quick) for at in range(count)]


def test_quick_has_every_test_without_spark():
    plain = cases("f", 50, None)
    assert {each.id for each in plain} == quick_cases(plain)


def test_quick_mark_sets_the_number_of_cases():
    quick = quick_cases([*cases("one", 1), *cases("ten", 10), *cases("eight", 99, 8)])
    assert {"one": 1, "ten": 1, "eight": 8} == {
        name: sum(each.startswith(f"{name}[") for each in quick) for name in ("one", "ten", "eight")
    }


def test_quick_leaves_out_tests_marked_full():
    assert frozenset() == quick_cases([*cases("f", 9, 0), *cases("g", 1, 0)])


def test_collection_order_does_not_change_the_selection():
    found = [each for at in range(30) for each in cases(f"file{at}.py::f", 3)]
    assert quick_cases(found) == quick_cases(found[::-1])
    assert drawn_cases(found, 0.3, "a") == drawn_cases(found[::-1], 0.3, "a")


def test_rest_draws_whole_files_by_key():
    found = [each for at in range(30) for each in cases(f"file{at}.py::f", 5)]
    quick, rest = quick_cases(found), drawn_cases(found, 0.2, "one commit")
    # A fifth of the thirty files, each with the four cases outside the quick tier.
    assert 24 == len(rest)
    assert not quick & rest
    assert rest != drawn_cases(found, 0.2, "another commit")


def test_quick_and_whole_rest_are_all_tests():
    found = [*cases("a.py::f", 17), *cases("b.py::g", 5, 0)]
    assert {each.id for each in found} == quick_cases(found) | drawn_cases(found, 1.0, "")
