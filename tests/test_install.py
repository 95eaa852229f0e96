"""Wheel and sdist: their files, their requirements, and README's examples in an environment of the wheel alone.

Environments hold only the packages that the wheel requires, as links to those of this environment: no network is used.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
CODE = ("connectors/", "pruning/")
INSTALL = "pip install 'scanprune[spark]'"
# Java sources lie in a package or in its folder `java`.
JAVA = ("connectors/spark/java/Added.java", "connectors/delta/Added.java")


def run(*command: str | os.PathLike[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, env=env or None, capture_output=True, text=True, check=False, timeout=280)
    assert 0 == done.returncode, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def tracked() -> list[str]:
    """The files of the checkout that git tracks, without the output of an earlier build."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing tells its own files from others")
    names = run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


@dataclass(frozen=True, slots=True)
class Built:
    """The copied checkout, the wheel and the sdist built from it, and the wheel built from the sdist."""

    source: Path
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    for name in JAVA:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("public class Added {}\n")
    build = (sys.executable, "-m", "build", "--no-isolation")
    # The first build makes the sdist, and the wheel from the sdist. A build from the tree leaves files in it, so it
    # comes last.
    run(*build, "--outdir", folder / "both", source, cwd=folder)
    run(*build, "--wheel", "--outdir", folder / "alone", source, cwd=folder)
    (wheel,), (sdist,) = (folder / "alone").glob("*.whl"), (folder / "both").glob("*.tar.gz")
    (wheel_of_sdist,) = (folder / "both").glob("*.whl")
    return Built(source, wheel, sdist, wheel_of_sdist)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path):
    (text,) = (each for name, each in contents(wheel).items() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(text)


def test_wheel_holds_exactly_the_package_files(built):
    shipped = {name for name in tracked() if name.startswith(CODE) and not name.endswith(".md")}
    expected = {*shipped, *JAVA, "scanprune.py"}
    assert {"pruning/py.typed", "connectors/py.typed"} < expected
    found = contents(built.wheel)
    assert expected == {name for name in found if ".dist-info/" not in name}
    assert [] == [name for name in expected if found[name] != (built.source / name).read_bytes()]


def test_sdist_builds_the_same_wheel(built):
    assert built.wheel.name == built.wheel_of_sdist.name
    assert contents(built.wheel) == contents(built.wheel_of_sdist)
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "scanprune.py", *JAVA} <= names


def requirements(wheel: Path, *extras: str) -> list[Requirement]:
    """The requirements of the wheel with these extras, including the extras that they name."""
    every = [Requirement(each) for each in metadata(wheel).get_all("Requires-Dist")]
    return list(_requirements(every, extras))


def _requirements(every: list[Requirement], extras: Iterable[str]) -> Iterator[Requirement]:
    for each in every:
        if not _applies(each, extras):
            continue
        if each.name == "scanprune":
            yield from _requirements([other for other in every if other.marker], each.extras)
        else:
            yield each


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def test_spark_is_required_only_by_the_extra(built):
    without = {each.name for each in requirements(built.wheel)}
    assert {"numpy", "pyarrow", "rich", "typer"} == without
    assert {*without, "pyspark", "delta-spark", "pandas"} == {each.name for each in requirements(built.wheel, "spark")}


@pytest.mark.parametrize("extra", ["demo", "bench", "dev"])
def test_every_other_extra_requires_spark(built, extra):
    assert {"pyspark", "delta-spark", "pandas"} <= {each.name for each in requirements(built.wheel, extra)}


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel and its requirements; `site` is the site-packages folder."""

    folder: Path
    site: Path

    def run(self, program: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
        """The result of an executable of the environment, which sees no other packages."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("JAVA_HOME", "SPARK_SUBMIT_OPTS") if name in os.environ}
        command = self.folder / "bin" / program
        return subprocess.run(
            [command, *arguments],
            cwd=home,
            env={**kept, "PATH": path, "HOME": str(home), "TERM": "dumb"},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )


def environment(folder: Path, wheel: Path, *extras: str) -> Environment:
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    linked = folder / "packages"
    linked.mkdir()
    for each in distributions(requirements(wheel, *extras)):
        for name in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            (linked / name).symlink_to(Path(str(each.locate_file(name))))
    (site / "packages.pth").write_text(f"{linked}\n")
    return Environment(folder / "venv", site)


def distributions(required: Iterable[Requirement]) -> list[importlib.metadata.Distribution]:
    """The distributions of the requirements and of their requirements in turn, each once."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(required)
    while waiting:
        requirement = waiting.pop()
        each = importlib.metadata.distribution(requirement.name)
        if each.metadata["Name"] not in found:
            found[each.metadata["Name"]] = each
            waiting += [other for other in map(Requirement, each.requires or ()) if _applies(other, requirement.extras)]
    return list(found.values())


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory) -> Environment:
    """An environment with the wheel installed without an extra."""
    return environment(tmp_path_factory.mktemp("bare"), built.wheel)


WITHOUT_SPARK = """
import connectors, pruning, scanprune
from scanprune import *

print(*(each.__file__ for each in (connectors, pruning, scanprune)), sep="\\n")
try:
    prune(None)
except EnvironmentProblem as error:
    print(error)
"""


def test_import_without_extra_names_the_extra(bare, tmp_path):
    done = bare.run("python", "-c", WITHOUT_SPARK, home=tmp_path)
    assert "" == done.stderr
    *files, message = done.stdout.splitlines()
    names = ("connectors/__init__.py", "pruning/__init__.py", "scanprune.py")
    assert [str(bare.site / name) for name in names] == files
    assert INSTALL in message


def test_command_without_extra_names_the_extra(bare, tmp_path):
    version = bare.run("scanprune", "--version", home=tmp_path)
    assert (f"scanprune {importlib.metadata.version('scanprune')}\n", "") == (version.stdout, version.stderr)
    done = bare.run("scanprune", "run", "SELECT 1", home=tmp_path)
    assert (1, "") == (done.returncode, done.stdout)
    (line,) = done.stderr.splitlines()
    assert line.startswith("scanprune: Cannot run without Spark: ")
    assert INSTALL in line


EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
# A program of a user: it starts a session, runs the examples, prints the module files that the driver and the workers
# import, and prunes by keys that tasks summarize.
USER_PROGRAM = """
import sys
from pathlib import Path

import pyarrow as pa
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").appName("theirs")
for name, value in {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.jars.excludes": "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}.items():
    builder = builder.config(name, value)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

# Each example of README continues the previous one.
names = {"__name__": "__main__", "spark": spark}
for path in sys.argv[1:]:
    print("example", path)
    exec(compile(Path(path).read_text(), path, "exec"), names)


def files(batches):
    import connectors
    import pruning
    import scanprune

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [each.__file__ for each in (connectors, pruning, scanprune)]})


print("application", SparkSession.getActiveSession().sparkContext.appName)
for row in spark.range(0, 1, 1, 1).mapInArrow(files, "file string").collect():
    print("worker", row.file)

import connectors
import pruning
import scanprune

for each in (connectors, pruning, scanprune):
    print("driver", each.__file__)
spark.range(0, 1200, 1, 12).write.format("delta").save(str(Path.cwd() / "sales"))
read = scanprune.pruned_read(spark, Path.cwd() / "sales", keys={"id": spark.range(850, 150_000)})
(table,) = scanprune.explain(read).tables
print("files", table.files_kept, table.files_total)
"""


@pytest.mark.spark
@pytest.mark.full
def test_readme_examples_run_with_the_installed_wheel(built, tmp_path):
    installed = environment(tmp_path, built.wheel, "spark")
    assert EXAMPLES
    paths = [tmp_path / f"example_{at}.py" for at in range(len(EXAMPLES))]
    for path, example in zip(paths, EXAMPLES, strict=True):
        path.write_text(example, encoding="utf-8")
    done = installed.run("python", "-c", USER_PROGRAM, *map(str, paths), home=tmp_path)
    assert 0 == done.returncode, done.stderr[-4000:]
    printed = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    assert [["example", str(path)] for path in paths] == [each for each in printed if each[0] == "example"]
    assert [["application", "theirs"]] == [each for each in printed if each[0] == "application"]
    expected = [
        str(installed.site / name) for name in ("connectors/__init__.py", "pruning/__init__.py", "scanprune.py")
    ]
    for place in ("driver", "worker"):
        assert expected == [file for where, file in printed if where == place]
    # Eight of twelve files, with a hundred rows each, lie wholly below the first key.
    assert [["files", "4 12"]] == [each for each in printed if each[0] == "files"]
