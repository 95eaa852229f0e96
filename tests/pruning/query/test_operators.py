"""Every place that tells plan operators apart says what it does with each class of operator.

Places are found in the source: functions with a `match` over operator classes. A class that a place leaves to its last
arm stands in `LAST_ARM`, so a new class of operator fails here until each place names it or leaves it out on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from connectors.spark import plan_tree
from pruning.query import build_selection, exchange_reuse, key_origins, lineage, plan
from pruning.query.plan import Node

ROOT = Path(__file__).parents[3]
OPERATORS: Mapping[str, type[Node]] = {
    name: each
    for name, each in vars(plan).items()
    if isinstance(each, type) and issubclass(each, Node) and each is not Node
}
ALL = frozenset(OPERATORS)
# The Spark operators that are read as each class.
KINDS: Mapping[str, frozenset[str]] = {
    "Filter": frozenset({"Filter"}),
    "Generate": frozenset({"Generate"}),
    "GlobalAggregate": frozenset({"Aggregate"}),
    "Grouping": frozenset({"Aggregate", "Window", "WindowGroupLimit"}),
    "Join": frozenset({"Join"}),
    "Limit": frozenset({"GlobalLimit", "LocalLimit", "Offset"}),
    "Passthrough": frozenset(plan_tree._PASSING),
    "Project": frozenset({"Project"}),
    "RankLimit": frozenset({"WindowGroupLimit"}),
    "Relation": frozenset({"LogicalRelation"}),
    "Sort": frozenset({"Sort"}),
    "Union": frozenset({"Union"}),
}
# Limits choose other rows when they run again; `ReturnAnswer` stands only at the top of a plan, and no build there.
NOT_REPEATABLE = frozenset({"GlobalLimit", "LocalLimit", "Offset", "ReturnAnswer"})
# Operators that move rows to other tasks, or do nothing in their tasks.
NOT_IN_PLACE = frozenset({"Grouping", "Join", "Limit", "Relation"})
# The classes that the last arm of a place treats rightly, and why.
LAST_ARM: Mapping[str, frozenset[str]] = {
    # A walk down: the last arm ends it with a reason.
    "pruning/query/lineage.py:_Walk._step": frozenset({"Limit"}),
    # A walk to the origins of a key: limits are named by their kinds in `_SOME_ROWS`.
    "pruning/query/key_origins.py:_origins": frozenset({"Limit"}),
    # Filters directly above a scan: any other operator ends them.
    "pruning/query/key_origins.py:filters_above": frozenset(
        {"Generate", "GlobalAggregate", "Grouping", "Join", "Limit", "Project", "RankLimit", "Union"}
    ),
    # The shape of a query: the kind of any other operator is all of it that counts.
    "pruning/query/lessons.py:_signature": frozenset(
        {"Generate", "GlobalAggregate", "Grouping", "Limit", "Passthrough", "Project", "RankLimit", "Sort", "Union"}
    ),
    # A walk up: the fields of a union stay expressions above it, as Spark projects them below.
    "pruning/query/struct_fields.py:_Walk.down": frozenset({"Union"}),
    # The expressions of an operator: the others have none that is read.
    "pruning/query/struct_fields.py:_expressions": frozenset({"Generate", "Limit", "Passthrough", "Relation", "Union"}),
    # Columns that no expression names: any operator but projections and aggregates, which are named by their kinds.
    "pruning/query/plan.py:columns_by_place": frozenset(
        {
            "Generate",
            "GlobalAggregate",
            "Grouping",
            "Join",
            "Limit",
            "Passthrough",
            "Project",
            "RankLimit",
            "Sort",
            "Union",
        }
    ),
    # A walk from an OR of marks down to the joins that made them: any other operator may change the rows in between.
    "pruning/query/disjunctions.py:_marking": frozenset(
        {"Generate", "GlobalAggregate", "Grouping", "Limit", "RankLimit", "Relation", "Union"}
    ),
    # Operators with conditions that compare keys.
    "pruning/query/join_graph.py:JoinGraph.of": frozenset(
        {
            "Generate",
            "GlobalAggregate",
            "Grouping",
            "Limit",
            "Passthrough",
            "Project",
            "RankLimit",
            "Relation",
            "Sort",
            "Union",
        }
    ),
    # Operators that set columns equal: the last arm has none, and keeps the ids of columns.
    "pruning/query/equal_columns.py:_equal_pairs": frozenset({"Generate", "Limit", "Passthrough", "Relation", "Sort"}),
    # Operators with conditions, and computed columns: no condition is copied below any other.
    "pruning/query/equal_columns.py:_cast_columns": frozenset(
        {
            "Generate",
            "GlobalAggregate",
            "Grouping",
            "Limit",
            "Passthrough",
            "RankLimit",
            "Relation",
            "Sort",
            "Union",
        }
    ),
    # Rows of a leaf or limit: the last arm says that any other operator may leave some out.
    "pruning/query/late_conditions.py:gives_every_row": frozenset(
        {"Generate", "GlobalAggregate", "Grouping", "Join", "RankLimit", "Relation", "Union"}
    ),
    # Operators that Spark moves a condition below: the last arm takes all that may raise below one that is not known.
    "pruning/query/late_conditions.py:_computed": frozenset(),
    # A walk to the first join: the last arm finds no fallback.
    "pruning/query/join_condition.py:fallback_build_sides": frozenset({"Generate", "Limit", "Relation", "Union"}),
    # Operators of one row: the last arm knows of none.
    "pruning/query/join_condition.py:is_one_row": frozenset({"Generate", "Relation", "Union"}),
    # `_REPEATABLE` has named the kind; these need no further fact.
    "pruning/query/build_selection.py:_is_repeatable": frozenset(
        {"Filter", "Generate", "Join", "Limit", "Passthrough", "Project", "Sort", "Union"}
    ),
    # Operators that may give fewer keys than their tables hold: for the others, the last arm says that they give all.
    "pruning/query/build_selection.py:_leaves_out": frozenset(
        {"Generate", "GlobalAggregate", "Grouping", "Limit", "Passthrough", "Project", "RankLimit", "Sort", "Union"}
    ),
    # Estimates of rows: each operator is named; the last arm adds up the rows below any other.
    "pruning/query/cardinality.py:Cardinalities._rows_of": frozenset(),
    # Costs of a row: operators without a rate of their own handle it as a projection does; a scan has no row below.
    "pruning/query/plan_cost.py:PlanCost._row_through": frozenset({"Limit", "Relation"}),
    # Operators that take the first rows of an order.
    "pruning/query/top_k.py:_top_ks": frozenset(
        {
            "Filter",
            "Generate",
            "GlobalAggregate",
            "Grouping",
            "Join",
            "Passthrough",
            "Project",
            "Relation",
            "Sort",
            "Union",
        }
    ),
    # Operators between a limit and its sort: the last arm finds no order.
    "pruning/query/top_k.py:_below_limit": frozenset(
        {"Filter", "Generate", "GlobalAggregate", "Grouping", "Join", "Passthrough", "RankLimit", "Relation", "Union"}
    ),
    # Rows that surely reach the order: the last arm proves none.
    "pruning/query/top_k.py:_proving": frozenset({"Generate", "GlobalAggregate", "Grouping", "Limit", "RankLimit"}),
    # Random plans hold limits as nodes without a class, which the last arm interprets by their kinds.
    "tests/pruning/plan_interpreter.py:rows_of": frozenset({"Limit"}),
}


def names_in(node: ast.AST) -> Iterator[str]:
    """The operator classes in the patterns of a function's `match` statements, and in its `isinstance` tests."""
    for each in ast.walk(node):
        match each:
            case ast.MatchClass(cls=ast.Name(id=name)) if name in OPERATORS:
                yield name
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, tested]):
                yield from (it.id for it in ast.walk(tested) if isinstance(it, ast.Name) and it.id in OPERATORS)
            case _:
                pass


def matches_operators(function: ast.AST) -> bool:
    patterns = (it for each in ast.walk(function) if isinstance(each, ast.Match) for it in ast.walk(each))
    return any(
        isinstance(each, ast.MatchClass) and isinstance(each.cls, ast.Name) and each.cls.id in OPERATORS
        for each in patterns
    )


def functions_in(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef):
            yield f"{prefix}{each.name}", each
        elif isinstance(each, ast.ClassDef):
            yield from functions_in(each, f"{each.name}.")


def found_places() -> dict[str, frozenset[str]]:
    """The operator classes that each function names which has a `match` over operator classes."""
    files = [
        *ROOT.glob("pruning/**/*.py"),
        *ROOT.glob("connectors/**/*.py"),
        ROOT / "tests/pruning/plan_interpreter.py",
    ]
    return {
        f"{path.relative_to(ROOT)}:{name}": frozenset(names_in(function))
        for path in files
        for name, function in functions_in(ast.parse(path.read_text()))
        if matches_operators(function)
    }


PLACES = found_places()


def covered(named: Iterable[str]) -> frozenset[str]:
    """The classes among `named`, and all their subclasses."""
    classes = tuple(OPERATORS[name] for name in named)
    return frozenset(name for name, each in OPERATORS.items() if issubclass(each, classes))


def test_places_are_found():
    assert PLACES.keys() == LAST_ARM.keys()


@pytest.mark.parametrize("place", sorted(PLACES))
def test_place_says_what_it_does_with_each_operator(place):
    silent = ALL - covered(PLACES[place]) - LAST_ARM.get(place, frozenset())
    assert not silent, f"{place} does not say what it does with {sorted(silent)}: add a case, or a line to LAST_ARM"
    stale = LAST_ARM.get(place, frozenset()) & covered(PLACES[place])
    assert not stale, f"{place} names {sorted(stale)}, which LAST_ARM leaves to its last arm"


def read_kinds() -> frozenset[str]:
    """The kinds of nodes that the plan reader turns into a class."""
    made = next(each for name, each in functions_in(ast.parse(Path(plan_tree.__file__).read_text())) if name == "_made")
    patterns = (each for each in ast.walk(made) if isinstance(each, ast.MatchValue))
    values = (each.value.value for each in patterns if isinstance(each.value, ast.Constant))
    return frozenset({str(value) for value in values}) | plan_tree._PASSING


def test_plan_reader_makes_each_operator():
    missing = ALL ^ KINDS.keys()
    assert not missing, f"KINDS does not say which Spark operators are read as {sorted(missing)}"
    assert read_kinds() == frozenset().union(*KINDS.values())
    made = {each.id for each in ast.walk(ast.parse(Path(plan_tree.__file__).read_text())) if isinstance(each, ast.Name)}
    assert not ALL - made, f"connectors/spark/plan_tree.py makes no {sorted(ALL - made)}"


def test_build_selection_says_which_operators_repeat_their_rows():
    kinds = frozenset().union(*KINDS.values())
    silent = kinds - build_selection._REPEATABLE - NOT_REPEATABLE
    assert not silent, f"build_selection._REPEATABLE does not say if {sorted(silent)} repeat their rows"
    assert not build_selection._REPEATABLE & NOT_REPEATABLE


def test_exchanges_say_which_operators_stay_in_place():
    in_place = covered({"Passthrough", *(each.__name__ for each in exchange_reuse._IN_PLACE)})
    silent = ALL - in_place - covered(NOT_IN_PLACE)
    assert not silent, f"exchange_reuse.stays_in_place does not say if rows stay in place for {sorted(silent)}"
    assert not in_place & covered(NOT_IN_PLACE)


# Kinds of nodes that some places name by text, because they have no class of their own or share one.
@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        ("lineage._STOPS", frozenset(lineage._STOPS)),
        ("key_origins._SOME_ROWS", key_origins._SOME_ROWS),
    ],
)
def test_limits_are_named_by_kind(place, kinds):
    silent = KINDS["Limit"] - kinds
    assert not silent, f"{place} does not name {sorted(silent)}"


def test_columns_are_named_by_projections_and_aggregates():
    assert plan._NAMING == KINDS["Project"] | KINDS["GlobalAggregate"]
