"""Expressions that may raise an error: guards by their form, and traits that say nothing."""

from __future__ import annotations

import pytest

from pruning.query.fallible import first_fallible
from pruning.query.plan import Expression


def of(kind, *children, type_="int", text=""):
    return Expression(kind=kind, type=type_, children=tuple(children), text=text)


def literal(text, type_="int"):
    return of("Literal", type_=type_, text=text)


def column(type_="double"):
    return of("Length", literal("x", "string"), type_=type_)


def traits(expression):
    letters = {"double": "f", "int": "i", "boolean": "b"}
    own = "A" + letters.get(expression.type, "n" if expression.type.startswith("decimal") else "s")
    return own + "".join(map(traits, expression.children))


def raises(expression):
    return first_fallible([expression], traits(expression))


def divided(divisor):
    return of("Divide", literal("1", "double"), divisor, type_="double")


X = column()
ZERO = literal("0.0", "double")
NULL = literal("None", "double")
IS_ZERO = of("EqualTo", X, ZERO, type_="boolean")
NOT_ZERO = of("Not", IS_ZERO, type_="boolean")
ROUNDED = of("Cast", X, type_="decimal(9,2)")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (divided(ZERO), "a division"),
        (divided(NULL), ""),
        (divided(literal("2.0", "double")), ""),
        (divided(X), "a division"),
        (divided(of("If", IS_ZERO, NULL, X, type_="double")), ""),
        (of("CaseWhen", IS_ZERO, NULL, divided(X), type_="double"), ""),
        (of("CaseWhen", IS_ZERO, divided(X), NULL, type_="double"), "a division"),
        (of("CaseWhen", NOT_ZERO, divided(X), NULL, type_="double"), ""),
        (of("CaseWhen", NOT_ZERO, NULL, divided(X), type_="double"), "a division"),
        (of("If", of("GreaterThan", X, ZERO, type_="boolean"), NULL, divided(X), type_="double"), "a division"),
        (of("If", IS_ZERO, NULL, divided(ROUNDED), type_="double"), "a division"),
    ],
)
def test_guard_counts_only_where_it_holds(expression, found):
    assert raises(expression) == found


@pytest.mark.parametrize("wrong", ["", "Af", "AfAfAfAf"])
def test_traits_of_the_wrong_length_say_nothing(wrong):
    assert first_fallible([divided(literal("2.0", "double"))], wrong) == "a division"
