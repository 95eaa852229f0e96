"""`Mutant`: a line of the packages that is replaced, and checks that have to fail on it.

Each mutant runs in a process that is forked from one with numpy, pytest and Hypothesis loaded, and none of our modules.
An import hook gives it the replaced source, so no file is written.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parent.parent
# Loaded once for all mutants.
_PRELOADED = [
    *("numpy", "pyarrow.parquet", "pytest", "_pytest.assertion.rewrite", "hypothesis.strategies", "duckdb"),
    *("pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types", "mmh3"),
]
# Exit code 1 of pytest says that tests failed; any other one that they did not run.
_TESTS = """
import sys, pytest
# Hypothesis was loaded before pytest could rewrite its assertions, which it has no use for.
options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
code = pytest.main([*options, "--hypothesis-profile=mutants", "-m", "not spark", *{paths!r}])
assert code != 1, "tests failed"
if code:
    raise RuntimeError(f"pytest ended with {{code}}")
"""


CORE_CHECKS = "from tests.pruning.soundness import check_all; check_all()"


def run_of(*paths: str) -> str:
    """The program that runs test files, named below `tests`."""
    return _TESTS.format(paths=[f"tests/{each}" for each in paths])


@dataclass(frozen=True)
class Mutant:
    """A file, a part of it that occurs once, what is put in its place, and the program that has to fail then."""

    file: str
    part: str
    replacement: str
    checks: str = CORE_CHECKS

    def source(self) -> str:
        """The replaced source; `ValueError` unless the part occurs once."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.part) != 1:
            msg = f"{self.part!r} is {text.count(self.part)} times in {self.file}: bring the mutant up to date"
            raise ValueError(msg)
        return text.replace(self.part, self.replacement)

    def run(self, output: Path) -> str:
        """The output of the checks, with the traceback of the one that failed; `output` is a file for it."""
        module = self.file.removesuffix(".py").replace("/", ".")
        child = _forks().Process(
            target=_check, args=(module, str(ROOT / self.file), self.source(), self.checks, output)
        )
        child.start()
        child.join()
        return "" if child.exitcode == 0 else output.read_text(encoding="utf-8") or f"ended with {child.exitcode}"


def _forks() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _check(module: str, path: str, source: str, checks: str, output: Path) -> None:
    """Runs checks in this process, which has loaded none of our packages yet."""
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.chdir(ROOT)
    for name in [each for each in os.environ if each.startswith("PYTEST_")]:
        del os.environ[name]
    sys.path.insert(0, str(ROOT))
    if loaded := [name for name in sys.modules if name.partition(".")[0] in {"pruning", "connectors"}]:
        raise RuntimeError(f"{loaded[0]} was loaded before it could be replaced")
    sys.meta_path.insert(0, _Replaced(module, path, source))
    try:
        exec(compile(checks, "<checks>", "exec"), {"__name__": "checks"})  # noqa: S102 - programs of these tests
    except BaseException:  # noqa: BLE001 - the outcome of the checks
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


class _Replaced(MetaPathFinder):
    """Finds one module with another source than its file has."""

    def __init__(self, module: str, path: str, source: str) -> None:
        self._module, self._path, self._loader = module, path, _Source(module, path)
        self._loader.text = source

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        return spec_from_file_location(fullname, self._path, loader=self._loader)


class _Source(SourceFileLoader):
    text = ""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self.text, self.path, "exec", dont_inherit=True)
