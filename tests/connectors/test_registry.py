"""Connectors of others that are broken, or share a name or a file format: the others go on, and a warning says so."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from connectors import registry
from connectors.base import Connector
from connectors.delta.table import DELTA
from connectors.parquet.table import PARQUET, ParquetConnector
from connectors.registry import _Registered, claiming, connectors_of, fingerprints, register, table_of
from connectors.spark.session_state import state_of
from pruning import PruningCache, explain, prune, pruned_read
from pruning.errors import InvalidOptionError, SourceNotFoundError
from pruning.limits import LIMITS
from pruning.reasons import Reason, ReasonCode
from sample_data.rows import Rows
from tests.connectors.toy import TOY, ToyConnector
from tests.costs import FREE_BUILDS

pytestmark = [pytest.mark.spark, pytest.mark.quick(3)]

OPTIONS = FREE_BUILDS


class Other(ParquetConnector):
    """A connector that reads files of Parquet, too, and knows no leaf."""

    name = "other"

    def claims_path(self, *_: Any) -> bool:
        return False

    def table_of(self, *_: Any) -> None:
        return None

    def fingerprints(self, _: Any, leaves: Any) -> list[None]:
        return [None] * len(leaves)


class Nameless(ToyConnector):
    """A connector without one of the attributes that it has to set."""

    @property
    def skipping_conf(self) -> str:
        raise AttributeError


OTHER, SECOND, NAMELESS, A_CLASS = Other(), Other(), Nameless(), Other


def raises(*_: object) -> Any:
    msg = "secret"
    raise RuntimeError(msg)


@pytest.fixture
def warnings_of(caplog) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "scanprune")
    return lambda: [each.getMessage() for each in caplog.records if each.name == "scanprune"]


@pytest.fixture
def installed(monkeypatch, tmp_path) -> Callable[..., None]:
    """Installs a package whose entry points add connectors, beside a jar on the path, as PySpark adds them."""

    def install(*values: str) -> None:
        package = tmp_path / "packages" / "others-1.0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
        lines = [f"e{at} = {each}" for at, each in enumerate(values)]
        (package / "entry_points.txt").write_text("\n".join(["[scanprune.connectors]", *lines, "[other]", "x = y:z"]))
        monkeypatch.syspath_prepend(str(package.parent))
        monkeypatch.syspath_prepend(str(tmp_path / "no archive.jar"))
        (tmp_path / "no archive.jar").write_text("no archive")
        registry._installed.cache_clear()

    yield install
    registry._installed.cache_clear()


@pytest.fixture
def registered(spark) -> Callable[..., None]:
    """Gives the session connectors until the test ends."""
    slot = state_of(spark).slot(_Registered)
    before, slot.warned = slot.connectors, set()

    def give(*connectors: Connector) -> None:
        slot.connectors = list(connectors)

    yield give
    slot.connectors, slot.warned = before, set()


@pytest.fixture
def path(spark, tmp_path) -> str:
    spark.range(0, 400, 1, 1).selectExpr("id AS k", "id % 3 AS other").repartitionByRange(8, "k").write.parquet(
        str(tmp_path / "facts")
    )
    spark.sql("SELECT 60L AS k").write.parquet(str(tmp_path / "build"))
    return str(tmp_path / "facts")


def query(spark, path: str):
    build = spark.read.parquet(path.replace("facts", "build")).where("k > 5")
    return spark.read.parquet(path).join(build, "k")


def check_pruned(spark, path: str) -> None:
    """A query and a read that keep one of eight files, and give the rows of the query."""
    df = query(spark, path)
    result = prune(df, options=OPTIONS, cache=PruningCache())
    assert Rows(df.collect()) == Rows(result.collect())
    keys = spark.read.parquet(path.replace("facts", "build")).groupBy("k").count().select("k")
    read = pruned_read(spark, path, keys={"k": keys}, exact=True)
    assert 1 == read.count()
    for each in (result, read):
        assert [(1, 8)] == [(it.files_kept, it.files_total) for it in explain(each).tables], str(explain(each))


HERE = "tests.connectors.test_registry"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_package:CONNECTOR", r"loading it failed \(ModuleNotFoundError\)"),
        (f"{HERE}:NO_SUCH_NAME", r"loading it failed \(AttributeError\)"),
        (f"{HERE}:A_CLASS", "expected an object whose class extends connectors.base.Connector, found the class Other"),
        (f"{HERE}:HERE", "expected an object whose class extends connectors.base.Connector, found str"),
        (f"{HERE}:NAMELESS", "found no skipping_conf"),
    ],
)
def test_an_entry_point_without_a_connector_is_left_out_with_one_warning(
    spark, path, installed, warnings_of, value, why
):
    installed(value, f"{HERE}:OTHER")
    check_pruned(spark, path)
    assert ["other", "delta", "parquet"] == [each.name for each in connectors_of(spark)]
    (warning,) = warnings_of()
    pattern = f"Leaving out the connector {value}: .*{why}.*; .*update or uninstall the package"
    assert re.search(pattern, warning), warning


def test_of_two_connectors_of_one_name_the_first_is_asked(spark, path, installed, registered, warnings_of, monkeypatch):
    installed(f"{HERE}:OTHER", f"{HERE}:SECOND")
    assert [OTHER, DELTA, PARQUET] == list(connectors_of(spark))
    (warning,) = warnings_of()
    assert "another package has a connector of the name 'other', which is asked; uninstall one of them" in warning
    mine = Other()
    registered(mine)
    assert [mine, DELTA, PARQUET] == list(connectors_of(spark))
    # By name, by path and by leaf.
    opened = []
    monkeypatch.setattr(
        mine,
        "open",
        lambda *_, **__: (
            opened.append("mine") or PARQUET.open(spark, path, version=None, timestamp=None, limits=LIMITS)
        ),
        raising=False,
    )
    pruned_read(spark, path, keys={"k": [60]}, format="other")
    monkeypatch.setattr(mine, "claims_path", lambda *_: True, raising=False)
    pruned_read(spark, path, keys={"k": [60]})
    assert ["mine", "mine"] == opened
    assert mine is claiming(spark, path)


def test_a_path_that_no_connector_claims_is_refused(spark, path, registered):
    class NoParquet(Other):
        name = "parquet"

    registered(NoParquet())
    with pytest.raises(SourceNotFoundError, match="no connector claims the path, expected a table of parquet or delta"):
        pruned_read(spark, path, keys={"k": [60]})


@pytest.mark.parametrize("connector", [Other, "toy", NAMELESS], ids=["a class", "a text", "without an attribute"])
def test_only_a_connector_is_registered(spark, connector):
    with pytest.raises(InvalidOptionError, match=r"Cannot register .* as a connector: expected .*, found"):
        register(spark, connector)
    assert [DELTA, PARQUET] == list(connectors_of(spark))


def test_connectors_that_share_a_file_format_are_asked_in_turn(spark, path, registered, warnings_of):
    registered(OTHER)
    check_pruned(spark, path)
    assert [] == warnings_of()


def test_a_reason_of_the_first_connector_is_the_answer(spark, path, registered, monkeypatch):
    registered(OTHER)
    monkeypatch.setattr(Other, "table_of", lambda *_: Reason(ReasonCode.NO_STATISTICS, "mine"))
    leaf = query(spark, path)._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    assert Reason(ReasonCode.NO_STATISTICS, "mine") == table_of(spark, leaf, LIMITS)


def test_a_leaf_that_no_connector_knows_is_no_table_of_files(spark, tmp_path, registered, monkeypatch):
    spark.range(3).write.orc(str(tmp_path / "orc"))
    registered(TOY)
    monkeypatch.setattr(ToyConnector, "table_of", lambda *_: None)
    leaf = spark.read.orc(str(tmp_path / "orc"))._jdf.queryExecution().optimizedPlan()
    assert Reason(ReasonCode.NOT_FILES, "orc", "OrcFileFormat") == table_of(spark, leaf, LIMITS)


METHODS = ["before_execution", "early_query", "fingerprints", "scanned_version", "table_of"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_raises_costs_one_warning_and_the_other_connectors_go_on(
    spark, path, registered, warnings_of, monkeypatch, method
):
    registered(OTHER)
    monkeypatch.setattr(Other, method, raises)
    check_pruned(spark, path)
    check_pruned(spark, path)
    (warning,) = warnings_of()
    assert warning.startswith(f"The connector 'other' of {HERE} is broken: {method}() failed (RuntimeError); ")
    assert "update or remove the package that adds it" in warning
    assert "secret" not in "".join(warnings_of())


def test_a_failure_to_claim_a_path_does_not_leave_it_to_parquet(spark, path, registered, warnings_of, monkeypatch):
    """Parquet reads any path, so it would read the files of a table of which another connector knows more."""
    registered(OTHER)
    monkeypatch.setattr(Other, "claims_path", raises)
    with pytest.raises(SourceNotFoundError, match="'other' failed to tell if the path holds a table of it"):
        pruned_read(spark, path, keys={"k": [1]})
    assert 3 == pruned_read(spark, path, keys={"k": [*range(3)]}, format="parquet", exact=True).count()
    assert 1 == len(warnings_of())


@pytest.mark.parametrize("answer", [Reason(ReasonCode.NOT_CACHED, "a scan", "rows may change"), "first", None])
def test_the_first_answer_about_the_rows_of_a_leaf_is_final(spark, registered, monkeypatch, answer):
    monkeypatch.setattr(OTHER, "file_formats", ("ParquetFileFormat",), raising=False)
    monkeypatch.setattr(Other, "fingerprints", lambda *_: [answer])
    monkeypatch.setattr(type(connectors_of(spark)[-1]), "fingerprints", lambda *_: ["parquet"])
    registered(OTHER)
    assert [answer or "parquet"] == fingerprints(spark, ["ParquetFileFormat"], lambda _: [None])
