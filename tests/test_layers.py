"""Layers: pruning decides and loads no engine, connectors touch engines, and prose is plain."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMPOSITION_ROOT = ROOT / "pruning" / "api.py"
ENGINES = frozenset({"connectors", "delta", "deltalake", "duckdb", "pandas", "py4j", "pyarrow", "pyspark", "rich"})
ALLOWED = sys.stdlib_module_names | {"mmh3", "numpy", "pruning"}
# Renders plans and reports by rich, which a caller that only prunes never loads.
DRAWS = ROOT / "pruning" / "results" / "blocks.py"
# The attributes by which PySpark reaches its JVM, and the Java compiler that Spark ships.
JVM = frozenset(
    {"_jdf", "_jvm", "_jsparkSession", "_jsc", "_jc", "_gateway", "_jbroadcast", "_active_spark_context", "janino"}
)
JVM_DOOR = ROOT / "connectors" / "spark"
# First words that leave a sentence of a docstring or a comment without a subject.
WITHOUT_SUBJECT = re.compile(r"(What|Whether|Of|Who|Whose|Which|How|The same)\b")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(path: Path) -> Iterator[str]:
    """The full name of each module imported anywhere in a file, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level) if level > 0:
                yield f"{path.relative_to(ROOT).parts[0]}.{node.module or ''}"
            case _:
                pass


def jvm_names(tree: ast.Module) -> Iterator[str]:
    """The lines that name an attribute of `JVM`, with a dot or as a text for `getattr`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name in JVM:
                yield f"line {node.lineno}: {name}"
            case _:
                pass


@pytest.mark.parametrize("face", ["pruning", "scanprune"])
def test_import_of_pruning_loads_no_engine(face):
    program = f"import sys, {face}; print(sorted({set(ENGINES)!r} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("path", [path for path in modules("pruning") if path != COMPOSITION_ROOT], ids=name_of)
def test_pruning_imports_only_stdlib_and_numpy(path):
    allowed = ALLOWED | {"rich"} if path == DRAWS else ALLOWED
    assert set() == {name.partition(".")[0] for name in imported(path)} - allowed


@pytest.mark.parametrize("path", modules("connectors"), ids=name_of)
def test_connectors_do_not_import_the_composition_root(path):
    assert "pruning.api" not in set(imported(path))


@pytest.mark.parametrize(
    "path",
    [path for each in ("connectors", "pruning") for path in modules(each) if JVM_DOOR not in path.parents],
    ids=name_of,
)
def test_only_one_package_reaches_the_jvm(path):
    assert [] == list(jvm_names(ast.parse(path.read_text(encoding="utf-8"))))


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Sentences of docstrings and the beginnings of comments, each with its line."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            parts = re.split(r"(?<=[.:])\s+|\n\n", docstring)
            yield from ((getattr(node, "lineno", 1), each.strip()) for each in parts)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


@pytest.mark.parametrize("package", ["pruning", "connectors", "tests", "benchmarks", "sample_data"])
def test_prose_begins_with_a_subject(package):
    found = [
        f"{name_of(path)}:{line}: {text[:60]}"
        for path in modules(package)
        for line, text in sentences(path)
        if WITHOUT_SUBJECT.match(text)
    ]
    assert [] == found


def test_table_formats_are_named_only_by_connectors():
    """The registry and the session are the only other files that a new format changes."""
    named = re.compile(r"\bdelta\b|tahoe", re.IGNORECASE)
    found = {path.relative_to(ROOT) for each in ("pruning", "connectors") for path in modules(each)}
    found = {path for path in found if named.search((ROOT / path).read_text(encoding="utf-8"))}
    own = {path for path in found if path.parts[:2] in {("connectors", "delta"), ("connectors", "parquet")}}
    assert {"connectors/registry.py", "connectors/spark/session.py"} == {str(path) for path in found - own}


def test_no_java_but_that_of_a_connector_names_the_format_of_a_table():
    named = re.compile(r"delta|tahoe|parquet|\borc", re.IGNORECASE)
    found = {path for path in (ROOT / "connectors").rglob("*.java") if named.search(path.read_text(encoding="utf-8"))}
    assert {"delta", "parquet"} == {path.relative_to(ROOT / "connectors").parts[0] for path in found}


@pytest.mark.parametrize(
    "line", ["df._jdf.queryExecution()", "getattr(spark, '_jvm')", "names.org.codehaus.janino.X()"]
)
def test_jvm_names_are_found_with_their_line(line):
    (found,) = jvm_names(ast.parse(f"import os\n{line}"))
    assert found.startswith("line 2: ")


def test_imports_inside_functions_are_found():
    source = ROOT / "tests" / "test_layers.py"
    assert {"ast", "collections.abc", "collections.abc.Iterator", "pytest"} <= set(imported(source))


@pytest.mark.parametrize(
    ("folder", "other"),
    [("tests", "benchmarks"), ("benchmarks", "tests"), ("sample_data", "benchmarks"), ("sample_data", "tests")],
)
def test_tests_and_benchmarks_import_nothing_of_each_other(folder, other):
    """Tests of the benchmarks, in `benchmarks/tests`, may use helpers of the tests."""
    paths = [path for path in modules(folder) if ROOT / "benchmarks" / "tests" not in path.parents]
    assert len(paths) > 10
    found = {name_of(path) for path in paths for name in imported(path) if name.partition(".")[0] == other}
    assert set() == found


def test_top_level_folders_match_the_design():
    generated = {"build", "dist"}
    visible = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    with_code = {name for name in visible - generated if any((ROOT / name).rglob("*.py"))}
    assert with_code <= {"pruning", "connectors", "tests", "benchmarks", "sample_data"}
