"""Fields of structs that the plan reader makes columns: only those that lie in files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.spark.plan_tree import plan_tree
from pruning.query.plan import Relation, relations_of

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"


def struct(*names: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON of a struct of bigints; `metadata` is that of each field."""
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": metadata or {}} for name in names]
    return {"type": "struct", "fields": fields}


def relation(type_: dict[str, Any], metadata: dict[str, Any] | None = None) -> Relation:
    """The scan of a column `s` of a type, of which a projection takes the first field."""
    attribute = {
        "class": f"{EXPRESSIONS}AttributeReference",
        "num-children": 0,
        "name": "s",
        "dataType": type_,
        "metadata": metadata or {},
        "exprId": {"id": 7},
    }
    alias = {"class": f"{EXPRESSIONS}Alias", "num-children": 1, "name": "x", "exprId": {"id": 8}}
    taken = {"class": f"{EXPRESSIONS}GetStructField", "num-children": 1, "ordinal": 0}
    plan = [
        {"class": f"{LOGICAL}Project", "num-children": 1, "projectList": [[alias, taken, attribute]]},
        {"class": RELATION, "num-children": 0, "output": [[attribute]]},
    ]
    root, used = plan_tree(json.dumps(plan), f"{RELATION} 1 - t 7\n{LOGICAL}Project 1 -  8")
    assert {7, 8} == used
    (found,) = relations_of(root)
    return found


def test_the_field_that_is_used_is_a_column():
    found = relation(struct("a", "b"))
    assert [(("s", "a"), "bigint")] == [(each.path, each.type) for each in found.fields]
    assert (7, found.fields[0].column) == found.output
    assert found.fields[0].column < 0


@pytest.mark.parametrize(
    ("type_", "metadata"),
    [
        (struct("file_name"), {"__metadata_col": "_metadata", "__file_source_metadata_col": True}),
        (struct("0", "1", metadata={"__VARIANT_METADATA_KEY": {"path": "$.a"}}), None),
        (struct("a", "a"), None),
        ({"type": "array", "elementType": struct("a"), "containsNull": True}, None),
        ({"type": "udt", "class": "x", "sqlType": struct("a")}, None),
    ],
    ids=["_metadata", "variant", "two of a name", "array", "user-defined"],
)
def test_other_fields_are_no_columns(type_, metadata):
    found = relation(type_, metadata)
    assert ((), (7,)) == (found.fields, found.output)
