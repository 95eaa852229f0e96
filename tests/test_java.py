"""Java files compile by javac against the installed jars of Spark and Delta, without a Spark session.

Janino compiles them at run time and supports less of Java, for example no lambdas; tests with Spark cover that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from connectors.spark.jvm import JavaFile

ROOT = Path(__file__).resolve().parents[1]
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
JAVA = sorted(path for package in ("connectors", "tests") for path in (ROOT / package).rglob("java/*.java"))
WITH_DELTA = [path for path in JAVA if "import org.apache.spark.sql.delta." in path.read_text(encoding="utf-8")]
MOST_COLUMNS = 120
# The optimizing compiler costs more than it gains in a program that runs for seconds.
QUICK_START = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def javac() -> str:
    """The compiler of the JDK whose Java runs Spark, else the first one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=Path(home) / "bin") if home else None
    found = found or shutil.which("javac")
    if found is None:
        pytest.skip("there is no javac: install a JDK, or set JAVA_HOME to one")
    return found


def delta_jars() -> list[Path]:
    """The jars of the newest Delta that Spark's resolver has fetched, from any version of Ivy's folder."""
    found = sorted(Path.home().glob(".ivy2*/jars/io.delta_*.jar"))
    if not any(jar.name.startswith("io.delta_delta-spark") for jar in found):
        pytest.skip("the jars of Delta are not in ~/.ivy2*/jars: the first Spark session fetches them")
    return found


def errors(files: list[Path], folder: Path, jars: list[Path]) -> str:
    """The messages of javac, each with file and line; an empty text where all files compile."""
    path = os.pathsep.join(map(str, jars))
    command = [javac(), *QUICK_START, "-proc:none", "-nowarn", "-cp", path, "-d", str(folder / "classes")]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture
def wrong(tmp_path):
    found = tmp_path / "Wrong.java"
    found.write_text("""
        import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
        public class Wrong {
            public Object of(LogicalPlan plan) {
                return plan.noSuchMethod();
            }
        }""")
    return found


def test_files_compile_against_spark_jars(tmp_path):
    assert not errors([path for path in JAVA if path not in WITH_DELTA], tmp_path, [SPARK_JARS / "*"])


def test_files_compile_against_delta_jars(tmp_path):
    assert WITH_DELTA
    # These use some of the others.
    assert not errors(JAVA, tmp_path, [SPARK_JARS / "*", *delta_jars()])


def test_javac_error_has_file_and_line(tmp_path, wrong):
    jars = [path for name in ("spark-*.jar", "scala-library-*.jar") for path in SPARK_JARS.glob(name)]
    assert f"{wrong}:5: error: cannot find symbol" in errors([wrong], tmp_path, jars)


def test_class_names_are_file_names_and_unique():
    names = [path.stem for path in JAVA]
    assert sorted(set(names)) == sorted(names)
    assert [] == [path for path in JAVA if f"public class {path.stem} " not in path.read_text(encoding="utf-8")]


def test_java_files_are_package_data():
    package = ROOT / "connectors"
    assert sorted(package.rglob("*.java")) == [path for path in JAVA if package in path.parents]
    assert [] == [path for path in JAVA if not (path.parents[1] / "__init__.py").exists()]


def test_java_lines_are_at_most_120_columns():
    lines = [(path, at, line) for path in JAVA for at, line in enumerate(path.read_text(encoding="utf-8").splitlines())]
    assert [] == [(path, at + 1) for path, at, line in lines if len(line) > MOST_COLUMNS or line != line.rstrip()]


def test_classes_compiled_together_are_one_unit():
    one, other = JavaFile("connectors.delta", "ListingPass"), JavaFile("connectors.delta", "KnownScans")
    lines = JavaFile(one.package, one.name, (other.name,)).source().splitlines()
    imports = [line for line in lines if line.startswith("import ")]
    assert imports == lines[: len(imports)]
    assert sorted(set(imports)) == sorted(imports)
    both = [line for each in (one, other) for line in each.source().splitlines()]
    assert [line for line in both if not line.startswith("import ")] == lines[len(imports) :]
