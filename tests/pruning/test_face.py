"""The public names of both modules that export them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pruning
import scanprune
from pruning import errors

ROOT = Path(__file__).resolve().parents[2]


def test_both_modules_export_the_same_objects():
    assert sorted(pruning.__all__) == sorted(scanprune.__all__)
    assert [] == [name for name in pruning.__all__ if getattr(pruning, name) is not getattr(scanprune, name)]


@pytest.mark.parametrize("face", ["pruning", "scanprune"])
def test_star_import_exports_public_names_without_engine(face):
    program = f"import sys\nfrom {face} import *\nprint(*sorted(set(dir())), '|', 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    names, _, engine = done.stdout.partition(" | ")
    assert {*import_module(face).__all__} <= set(names.split())
    assert "False" == engine.strip()


def test_every_error_class_is_public():
    raised = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert "PruningError" in raised
    assert raised <= {*pruning.__all__}


def test_types_of_results_and_arguments_are_public():
    assert {"Explanation", "PruneReport", "Reason", "ReasonCode"} <= {*pruning.__all__}
    assert {"KeySummary", "PruningCache", "PruningOptions"} <= {*pruning.__all__}
    assert {"explain", "prune", "pruned_read", "report", "spark_session"} <= {*pruning.__all__}


def test_spark_session_is_exported_from_connectors():
    assert import_module("connectors.spark.session").spark_session is pruning.spark_session


@pytest.mark.parametrize("face", [pruning, scanprune])
def test_unknown_name_raises_attribute_error(face):
    with pytest.raises(AttributeError, match=f"module '{face.__name__}' has no attribute 'prunes'"):
        face.prunes  # noqa: B018 - the lookup is the test
