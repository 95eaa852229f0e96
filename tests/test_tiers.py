"""The tiers of the test suite leave no kind of test out and repeat themselves."""

from __future__ import annotations

from tests.tiers import Case, drawn_cases, quick_cases


def spark_cases(function: str, count: int, *, is_full: bool = False) -> list[Case]:
    return [Case(f"{function}[{at}]", function, is_spark=True, is_full=is_full) for at in range(count)]


def test_quick_has_every_test_without_spark():
    cases = [Case(f"f[{at}]", "f", is_spark=False, is_full=False) for at in range(50)]
    assert {each.id for each in cases} == quick_cases(cases)


def test_quick_has_some_cases_of_each_spark_function():
    cases = [*spark_cases("one", 1), *spark_cases("four", 4), *spark_cases("ten", 10)]
    quick = quick_cases(cases)
    assert {"one": 1, "four": 2, "ten": 4} == {
        name: sum(each.startswith(f"{name}[") for each in quick) for name in ("one", "four", "ten")
    }


def test_quick_leaves_out_tests_marked_full():
    cases = [*spark_cases("f", 9, is_full=True), Case("g", "g", is_spark=False, is_full=True)]
    assert frozenset() == quick_cases(cases)


def test_order_of_collection_does_not_change_the_choice():
    cases = spark_cases("f", 30)
    assert quick_cases(cases) == quick_cases(cases[::-1])
    assert drawn_cases(cases, 0.3, "a") == drawn_cases(cases[::-1], 0.3, "a")


def test_rest_is_disjoint_from_quick_and_differs_by_key():
    cases = [*spark_cases("f", 100), *spark_cases("g", 100, is_full=True)]
    quick, rest = quick_cases(cases), drawn_cases(cases, 0.2, "one commit")
    assert 38 == len(rest)
    assert not quick & rest
    assert rest != drawn_cases(cases, 0.2, "another commit")


def test_all_shares_together_are_all_tests():
    cases = [*spark_cases("f", 17), *spark_cases("g", 5, is_full=True)]
    assert {each.id for each in cases} == quick_cases(cases) | drawn_cases(cases, 1.0, "")
