from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from connectors.delta.field_metadata import FieldMetadata, types_before
from tests.connectors.delta.other_writers import FIELD_ID, PHYSICAL_NAME
from tests.connectors.delta_logs import schema_of


def schema() -> StructType:
    """A column whose field has stale names, and a column with its own."""
    found = schema_of({"id": "bigint", "nested": {"leaf": "int"}})
    found["id"].metadata = {PHYSICAL_NAME: "id", FIELD_ID: 3, "delta.generationExpression": "YEAR(ts)"}
    found["nested"].dataType["leaf"].metadata = {PHYSICAL_NAME: "other"}
    return found


@pytest.mark.parametrize(("mode", "name", "stale"), [("none", "leaf", 1), ("name", "other", 0), ("id", "other", 0)])
def test_physical_names_count_where_the_mapping_is_on(mode, name, stale):
    metadata = FieldMetadata(mode, generates=False)
    assert name == metadata.physical_name(schema()["nested"].dataType["leaf"])
    assert ["leaf: other"] * stale == list(metadata.stale_names(schema()))
    assert (mode == "id") is metadata.finds_by_id
    assert 3 == metadata.field_id(schema()["id"])


@pytest.mark.parametrize("generates", [False, True])
def test_generated_columns_count_where_the_protocol_has_them(generates):
    assert "year(ts)" * generates == FieldMetadata("none", generates).generation_expression(schema()["id"])


def test_former_types_count_always():
    field = schema()["id"]
    field.metadata = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert ["integer"] == types_before(field)
    assert [] == types_before(schema()["id"])
