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
    assert raises(expression).partition(",")[0] == found


@pytest.mark.parametrize("wrong", ["", "Af", "AfAfAfAf"])
def test_traits_of_the_wrong_length_say_nothing(wrong):
    assert first_fallible([divided(literal("2.0", "double"))], wrong).startswith("a division, ")


# The quotient may have more digits than a decimal, and Java gives no remainder then.
@pytest.mark.parametrize("mode", ["A", "T", "L"])
@pytest.mark.parametrize(
    ("kind", "name"), [("Remainder", "a remainder"), ("Pmod", "a remainder"), ("IntegralDivide", "a division")]
)
def test_remainder_of_decimals_raises_in_every_mode(kind, name, mode):
    of_decimals = of(kind, literal("1", "decimal(38,0)"), literal("7", "decimal(1,0)"))
    assert f"{name}, {of_decimals}" == first_fallible([of_decimals], f"{mode}n-N-n")
    assert "" == first_fallible([of_decimals], f"{mode}i-i-i")


@pytest.mark.parametrize(("mode", "found"), [("A", ""), ("L", "a remainder")])
def test_guard_of_a_wider_integer_is_none_where_casts_cut_digits_off(mode, found):
    great = of("Length", literal("x", "string"), type_="bigint")
    remainder = of("Remainder", literal("100"), of("Cast", great, type_="int"))
    guarded = of("If", of("EqualTo", great, literal("0")), literal("0"), remainder)
    # The cast itself raises under ANSI, where its mode says so.
    letters = {"If": "-i", "EqualTo": "-b", "Length": "-i", "Literal": "-i", "Remainder": "Ai", "Cast": f"{mode}i"}

    def written(each):
        return letters[each.kind] + "".join(map(written, each.children))

    assert first_fallible([guarded], written(guarded)).startswith(found or "a cast, CAST(length('x') AS int)")
