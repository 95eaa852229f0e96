"""README and its neighbours say what the code says."""

from __future__ import annotations

import ast
import re
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import pytest

from pruning.limits import Limits
from pruning.options import SESSION, PruningOptions

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_every_option_has_its_line():
    cells = re.findall(r"^\| (`[a-z_`, ]+) \| (.+?) \|", README.split("## Options")[1], re.MULTILINE)
    named = {name: default for names, default in cells for name in re.findall(r"`(\w+)`", names)}
    assert {each.name for each in fields(PruningOptions)} == {*named}
    # The environment of tests has another default of `cost_rates`.
    defaults = replace(PruningOptions(), cost_rates=SESSION)
    assert [] == [name for name, shown in named.items() if _shown(getattr(defaults, name)) not in shown]


def _shown(default):
    if isinstance(default, Limits):
        return "`Limits()`"
    if isinstance(default, bool | str):
        return f"`{default}`"
    return (
        f"{default >> 20} MiB" if default >= 1 << 20 and default % (1 << 20) == 0 else f"{default:,}".removesuffix(".0")
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=["enable", "merge", "stream", "prune", "pruned_read"])
def test_an_example_imports_what_is_there(example):
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.ImportFrom):
            assert [] == [each.name for each in node.names if not hasattr(import_module(node.module), each.name)]


def test_the_first_limit_says_which_joins_lose_rows():
    first = README.split("## Limits\n\n- ")[1].split("\n- ")[0]
    for word in ("left", "full", "anti", "`<=>`"):
        assert word in first


def test_the_versions_named_are_those_that_are_installed():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for package, name in (("pyspark", "Spark"), ("delta-spark", "Delta Lake")):
        (pinned,) = set(re.findall(rf'"{package}==([\d.]+?)(?:\.\*)?"', project))
        assert f"{name} {pinned}" in README


def test_every_file_that_is_linked_is_there():
    links = re.findall(r"\]\(([^)#:]+)(?:#[a-z-]+)?\)", README)
    assert len(links) > 20
    assert [] == [each for each in links if not (ROOT / each).exists()]


def test_every_target_named_is_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    texts = [
        README,
        *((ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "benchmarks/README.md")),
    ]
    for target in {each for text in texts for each in re.findall(r"`make ([a-z-]+)", text)}:
        assert f"\n{target}:" in makefile
