"""`with_fields`: fields of structs are columns where the struct of a scan passes, and expressions elsewhere."""

from __future__ import annotations

import pytest

from pruning.query.join_graph import JoinGraph
from pruning.query.key_origins import conditions_of
from pruning.query.plan import (
    Expression,
    Field,
    Filter,
    Grouping,
    Join,
    Limit,
    Node,
    Passthrough,
    PlanNames,
    Project,
    Relation,
    Sort,
    SortKey,
    Union,
    relations_of,
)
from pruning.query.struct_fields import with_fields
from tests.pruning.plans import call, column, equal, literal

STRUCT = Expression("AttributeReference", (), 7, "", "s")


def field(name: str, struct: Expression = STRUCT, type_: str = "bigint") -> Expression:
    return Expression("GetStructField", (struct,), None, type_, name)


def scan(at: int = 0, struct: int = 7, first: int = -1) -> Relation:
    """A scan of `k` and of a struct `s` of `id`, of `other`, and of another struct that holds `id`."""
    paths = (("s", "id"), ("s", "other"), ("s", "deep", "id"))
    fields = tuple(Field(first - place, struct, path, "bigint") for place, path in enumerate(paths))
    output = (struct - 1, struct, *(each.column for each in fields))
    return Relation(at, at, "LogicalRelation", output, names=("k", "s"), types=("bigint", ""), table="t", fields=fields)


def engine_columns(node: Node) -> tuple[int, ...]:
    """The output of a node by the engine, which has no fields."""
    return tuple(each for each in node.output if each >= 0)


def filtered(condition: Expression, child: Node) -> Filter:
    return Filter(child.id + 1, child.subtree_start, "Filter", engine_columns(child), (child,), condition=condition)


def projected(child: Node, made: dict[int, Expression]) -> Project:
    return Project(child.id + 1, child.subtree_start, "Project", tuple(made), (child,), made=made)


def owners(at: int) -> Relation:
    return Relation(at, at, "LogicalRelation", (50,), names=("id",), types=("bigint",), table="owners")


def joined(left: Node, key: Expression) -> Join:
    right = owners(left.id + 1)
    output = (*engine_columns(left), 50)
    return Join(left.id + 2, 0, "Join", output, (left, right), condition=equal(key, 50))


def probes(root: Node) -> list[tuple[str, int]]:
    """The columns of `t` that keys of a plan filter, each with its id."""
    found = [each for edge in JoinGraph.of(with_fields(root)).edges for each in edge.probes]
    return sorted({(each.name, each.column) for each in found if each.relation.table == "t"})


def test_fields_that_an_expression_names_are_columns_of_a_scan():
    found = with_fields(filtered(call("GreaterThan", field("id"), literal(5)), scan()))
    (relation,) = found.children
    assert isinstance(relation, Relation)
    assert [(-1, ("s", "id"))] == [(each.column, each.path) for each in relation.fields]
    assert (6, 7, -1) == relation.output == found.output
    assert ("s.id", "bigint") == (relation.name_of(-1), relation.type_of(-1))
    (condition,) = conditions_of(found, relation)
    assert call("GreaterThan", column(-1, name="s.id"), literal(5)) == condition


def test_plans_without_fields_are_left_alone():
    root = filtered(call("IsNotNull", column(50)), owners(0))
    assert with_fields(root) is root


def test_inner_structs_need_every_name_of_their_path():
    (relation,) = with_fields(filtered(call("IsNotNull", field("id", field("deep", type_=""))), scan())).children
    assert isinstance(relation, Relation)
    # The names do not tell which struct they are taken from.
    assert [-1, -3] == [each.column for each in relation.fields]


@pytest.mark.parametrize(
    "below",
    [
        lambda child: child,
        lambda child: filtered(call("IsNotNull", column(6)), child),
        lambda child: Passthrough(child.id + 1, 0, "Repartition", engine_columns(child), (child,)),
        lambda child: projected(child, {7: STRUCT, 6: column(6)}),
    ],
    ids=["scan", "filter", "repartition", "projection"],
)
def test_keys_reach_fields_below_operators_that_hand_on_the_struct(below):
    assert [("s.id", -1)] == probes(joined(below(scan()), field("id")))


def test_a_struct_by_another_name_has_fields_of_its_own():
    root = joined(projected(scan(), {9: STRUCT}), field("id", Expression("AttributeReference", (), 9, "", "buyer")))
    assert [("s.id", -1)] == probes(root)
    project = with_fields(root).children[0]
    assert isinstance(project, Project)
    assert project.made is not None
    (made,) = set(project.output) - {9}
    assert made not in {-1, -2, -3}
    assert column(-1, name="s.id") == project.made[made]


def test_an_inner_struct_passes_by_another_name():
    inner = Expression("AttributeReference", (), 9, "", "inner")
    root = joined(projected(scan(), {9: field("deep", type_="")}), field("id", inner))
    assert [("s.deep.id", -3)] == probes(root)


def test_a_projected_field_goes_by_its_own_name_in_messages():
    extracted = Expression("AttributeReference", (), 11, "bigint", "_extract_id")
    root = with_fields(joined(projected(scan(), {11: field("id")}), extracted))
    assert "Inner join: s.id by owners.id -> t.s.id" in str(JoinGraph.of(root)).splitlines()
    assert "t.s.id" == PlanNames(root).column(-1)


@pytest.mark.parametrize(
    "below",
    [
        lambda child: Limit(child.id + 1, 0, "GlobalLimit", engine_columns(child), (child,), count=5),
        lambda child: Grouping(child.id + 1, 0, "Window", engine_columns(child), (child,), groups={}),
        lambda child: Node(child.id + 1, 0, "Expand", engine_columns(child), (child,)),
        lambda child: projected(child, {7: call("ScalaUDF", STRUCT)}),
    ],
    ids=["limit", "window", "expand", "a computed struct"],
)
def test_keys_do_not_pass_other_operators(below):
    assert not probes(joined(below(scan()), field("id")))


def test_fields_of_a_union_stay_expressions():
    first, second = scan(), scan(1, 17, -11)
    union = Union(2, 0, "Union", engine_columns(first), (first, second))
    found = with_fields(joined(union, field("id")))
    assert found.condition == equal(field("id"), 50)


@pytest.mark.parametrize("kind", ["EqualTo", "EqualNullSafe"])
def test_fields_of_compared_structs_are_no_columns(kind):
    """Spark copies conditions on the fields of one to the other, which no rule would see."""
    other = Expression("AttributeReference", (), 60, "", "s")
    alike = Join(3, 0, "Join", (6, 7, 60), (scan(), owners(1)), condition=call(kind, STRUCT, other))
    found = with_fields(filtered(call("GreaterThan", field("id"), literal(5)), alike))
    assert found.condition == call("GreaterThan", field("id"), literal(5))
    (relation,) = (each for each in relations_of(found) if each.table == "t")
    assert ((), (6, 7)) == (relation.fields, relation.output)


def test_orders_name_fields():
    found = with_fields(
        Sort(1, 0, "Sort", (6, 7), (scan(),), order=(SortKey(field("id"), is_descending=True, nulls_first=False),))
    )
    assert isinstance(found, Sort)
    assert [-1] == [each.key.column for each in found.order]
