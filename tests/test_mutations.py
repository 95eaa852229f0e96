"""Break the derivation on purpose: a suite that does not notice would not notice a real bug either.

Each mutant is a copy of the packages in which one line was replaced. Its checks run in their own interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE_CHECKS = "from tests.pruning.soundness import check_all; check_all()"
DELTA_CHECKS = "from tests.connectors.stored_bounds import check_stored_bounds; check_stored_bounds()"


@dataclass(frozen=True)
class Mutant:
    """A file, a part of it that occurs once, and what is put in its place."""

    file: str
    part: str
    replacement: str
    checks: str = CORE_CHECKS

    def run(self, folder: Path) -> str:
        """What the checks say of a copy of the packages with this mutation: nothing if they pass."""
        for package in ("pruning", "connectors"):
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        mutated = folder / self.file
        source = mutated.read_text()
        if source.count(self.part) != 1:
            pytest.fail(f"{self.part!r} is {source.count(self.part)} times in {self.file}: bring the mutant up to date")
        mutated.write_text(source.replace(self.part, self.replacement))
        # The working folder comes first on the path of `-c`, so the copies hide the originals.
        command = [sys.executable, "-B", "-W", "ignore", "-c", self.checks]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return ran.stderr


MUTANTS = {
    "a-key-is-dropped": Mutant(
        *("pruning/keys/builder.py", "RangeSet.of_codes(type_, points,", "RangeSet.of_codes(type_, points[1:],")
    ),
    # 32
    "a-partial-build-is-published": Mutant(
        *("pruning/keys/builder.py", "self._reported != set(range(partitions))", "not self._reported")
    ),
    "a-merged-partition-is-forgotten": Mutant(
        *("pruning/keys/builder.py", "            mine.merge(theirs)\n", "            mine, theirs\n")
    ),
    "a-high-shrinks-by-one": Mutant(
        *(
            "pruning/scan/statistics.py",
            "np.where(has_high, highs, GREATEST)",
            "np.where(has_high, highs - 1, GREATEST)",
        )
    ),
    "an-end-of-a-range-is-left-out": Mutant("pruning/values/ranges.py", "(candidate <= highs)", "(candidate < highs)"),
    "an-unknown-bound-is-a-value": Mutant(
        *("pruning/scan/statistics.py", "np.where(has_low, lows, LEAST)", "np.where(~wrong, lows, LEAST)")
    ),
    "an-open-end-is-closed": Mutant(
        "pruning/scan/statistics.py", "        if ranges.unbounded:\n", "        if False:\n"
    ),
    "inverted-bounds-are-believed": Mutant(
        *("pruning/scan/statistics.py", "(self.has_low & self.has_high & is_inverted) | self.has_nan_bound()"),
        "self.has_nan_bound()",
    ),
    "nan-bounds-are-believed": Mutant("pruning/scan/statistics.py", " | self.has_nan_bound()", ""),
    "null-keys-are-ignored": Mutant(
        *(
            "pruning/scan/skipping.py",
            "null = domain.null & (column.null_count != 0)",
            "null = column.null_count > 1 << 40",
        )
    ),
    "a-missing-null-count-is-zero": Mutant(
        "pruning/scan/skipping.py", "(column.null_count != 0)", "(column.null_count > 0)"
    ),
    "all-null-skips-null-keys": Mutant(
        "pruning/scan/skipping.py", "value | null | nan, ", "(value | null | nan) & ~all_null, "
    ),
    "nan-keys-are-ignored": Mutant(
        *(
            "pruning/scan/skipping.py",
            "nan = domain.nan & column.may_have_nan & ~all_null",
            "nan = column.null_count > 1 << 40",
        )
    ),
    "columns-are-swapped": Mutant(
        *(
            "pruning/scan/skipping.py",
            "column_causes(containers.columns[name],",
            "column_causes(containers.columns[min(domains)],",
        )
    ),
    "only-the-last-column-counts": Mutant(
        *("pruning/scan/skipping.py", "_first(causes, column_causes(containers.columns[name], containers, domain))"),
        "column_causes(containers.columns[name], containers, domain)",
    ),
    "the-gap-beside-is-kept-open": Mutant(
        *("pruning/scan/compaction.py", 'gaps = np.searchsorted(keys[1], lows[within], "left")'),
        'gaps = np.searchsorted(keys[1], lows[within], "left") + 1',
    ),
    "a-bridged-gap-ends-too-early": Mutant(
        *("pruning/values/ranges.py", "np.concatenate([gaps_kept - 1, [len(self) - 1]])"),
        "np.concatenate([gaps_kept - 1, [len(self) - 2]])",
    ),
    "narrowing-wraps": Mutant(
        *("pruning/values/numeric_coercion.py", "    inside = keys.intersect(_shared(source, column))\n"),
        "    inside = RangeSet.of_codes(source, np.asarray(keys.lows).astype(np.int32).astype(np.int64))\n",
    ),
    "integers-are-rounded-twice": Mutant(
        *("pruning/values/numeric_coercion.py", "np.asarray(ends).astype(np.float32)"),
        "np.asarray(ends).astype(np.float64).astype(np.float32)",
    ),
    "zones-are-ignored": Mutant("pruning/values/coercion.py", "_ZONE_MARGIN = 18 * 3_600_000_000", "_ZONE_MARGIN = 0"),
    "zeros-have-two-codes": Mutant(
        "pruning/values/encoding.py", "(values.astype(np.float64) + 0.0)", "values.astype(np.float64)"
    ),
    "trailing-nul-bytes-are-ignored": Mutant(
        "pruning/values/byte_strings.py", "words.lengths[order[undecided]]", "np.zeros(len(undecided), np.int64)"
    ),
    "a-truncated-high-is-taken-as-it-is": Mutant(
        *(
            "connectors/delta/bounds.py",
            "codes = either.take(np.where(cut, rows + len(cut), rows))",
            "codes = high.codes",
        ),
        DELTA_CHECKS,
    ),
    "bytes-that-are-no-text-compare-as-what-stands-for-them": Mutant(
        "connectors/delta/bounds.py",
        "(self.is_source or (flaws.replaced and not _is_ascii(ranges)))",
        "self.is_source",
        DELTA_CHECKS,
    ),
    "a-high-cut-to-milliseconds-is-taken-as-it-is": Mutant(
        *("connectors/delta/bounds.py", "_MILLISECOND = 999", "_MILLISECOND = 0"), DELTA_CHECKS
    ),
}
INTACT = {
    "core": Mutant("pruning/errors.py", "class PruningError", "class PruningError"),
    "delta": Mutant("pruning/errors.py", "class PruningError", "class PruningError", DELTA_CHECKS),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the checks say of every mutant, two at a time."""
    everything = INTACT | MUTANTS
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: everything[name].run(tmp_path_factory.mktemp(name)), everything)
        return dict(zip(everything, found, strict=True))


@pytest.mark.parametrize("name", INTACT)
def test_a_copy_without_a_mutation_passes(name, outcomes):
    assert "" == outcomes[name]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name, outcomes):
    assert "AssertionError" in outcomes[name], outcomes[name] or "the checks passed"
