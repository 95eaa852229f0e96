"""Break the derivation on purpose: a suite that does not notice would not notice a real bug either."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.mutants import Mutant, run_of

# Every mutant runs the tests of its module, before the first of these tests: minutes, more beside other tests.
pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

DELTA_CHECKS = "from tests.connectors.stored_bounds import check_stored_bounds; check_stored_bounds()"

MUTANTS = {
    "a-key-is-dropped": Mutant(
        *("pruning/keys/builder.py", "RangeSet.of_codes(type_, points,", "RangeSet.of_codes(type_, points[1:],")
    ),
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
        *("pruning/values/numeric_coercion.py", "    inside = keys.intersect(_shared(key_type, column))\n"),
        "    inside = RangeSet.of_codes(key_type, np.asarray(keys.lows).astype(np.int32).astype(np.int64))\n",
    ),
    "integers-are-rounded-twice": Mutant(
        *("pruning/values/numeric_coercion.py", "np.asarray(ends).astype(np.float32)"),
        "np.asarray(ends).astype(np.float64).astype(np.float32)",
    ),
    "zones-are-ignored": Mutant("pruning/values/coercion.py", "ZONE_MARGIN = 18 * 3_600_000_000", "ZONE_MARGIN = 0"),
    "local-days-are-those-of-utc": Mutant(
        *("pruning/values/functions.py", "margin = ZONE_MARGIN if self", "margin = 0 if self"),
        run_of("pruning/values/test_functions.py"),
    ),
    "clocks-never-turn-back": Mutant(
        *("pruning/values/functions.py", "CLOCK_MARGIN = DAY_MICROS", "CLOCK_MARGIN = 0"),
        run_of("pruning/values/test_functions.py"),
    ),
    "sums-never-wrap": Mutant(
        *("pruning/values/functions.py", "below, above = max(0, -by), max(0, by)\n", "below, above = 0, 0\n"),
        run_of("pruning/values/test_functions.py"),
    ),
    "products-never-wrap": Mutant(
        *("pruning/values/functions.py", "-least - -least // by, greatest - greatest // by", "0, 0"),
        run_of("pruning/values/test_functions.py"),
    ),
    "days-end-before-a-longer-text": Mutant(
        *("pruning/values/date_texts.py", "high[: len(part)], key=text", "high[:4], key=text"),
        run_of("pruning/values/test_functions.py"),
    ),
    "a-remainder-is-left-out": Mutant(
        *("pruning/values/functions.py", "np.where(highs < 0, high, plus(high, by - 1))", "high"),
        run_of("pruning/values/test_functions.py"),
    ),
    "a-prefix-is-as-long-as-its-key": Mutant(
        *("pruning/values/functions.py", "above_extensions(first_characters(each, length))"),
        "above_extensions(each)",
        run_of("pruning/values/test_functions.py"),
    ),
    "days-of-a-writer-are-those-of-utc": Mutant(
        *("pruning/values/function_spans.py", "margin = ZONE_MARGIN if function", "margin = 0 if function"),
        run_of("pruning/values/test_function_spans.py"),
    ),
    "ends-in-the-wrong-order-become-a-span": Mutant(
        *("pruning/values/function_spans.py", "= results.without(results.is_inverted)", "= results"),
        run_of("pruning/values/test_function_spans.py"),
    ),
    "results-have-never-wrapped": Mutant(
        *("pruning/values/function_spans.py", "margin = max(function.margins)", "margin = 0"),
        run_of("pruning/values/test_function_spans.py"),
    ),
    "values-of-a-span-never-wrap": Mutant(
        *("pruning/values/function_spans.py", "    if below or beyond:\n", "    if False:\n"),
        run_of("pruning/values/test_function_spans.py"),
    ),
    "replaced-bytes-are-those-of-a-text": Mutant(
        *("pruning/values/function_spans.py", ".without(is_replaced)", ""),
        run_of("pruning/values/test_function_spans.py"),
    ),
    "null-of-a-function-is-null-of-its-source": Mutant(
        *("pruning/scan/generated_columns.py", " if self.is_sure and not is_text else has_null", ""),
        run_of("pruning/scan/test_generated_columns.py"),
    ),
    "a-function-gives-null-for-null-alone": Mutant(
        *(
            "pruning/scan/generated_columns.py",
            "np.full(len(source), self.is_sure)",
            "np.full(len(source), True)",
        ),
        run_of("pruning/scan/test_generated_columns.py"),
    ),
    "derived-bounds-replace-narrower-ones": Mutant(
        *("pruning/scan/generated_columns.py", "takes = has_theirs & (~has_ours | is_narrower)", "takes = has_theirs"),
        run_of("pruning/scan/test_generated_columns.py"),
    ),
    "a-preimage-leaves-its-type": Mutant(
        *("pruning/values/functions.py", "np.flatnonzero((lows <= greatest) & (highs >= least))"),
        "np.arange(len(lows))",
        run_of("pruning/values/test_functions.py"),
    ),
    "months-have-28-days": Mutant(
        *("pruning/values/date_texts.py", "monthrange(first.year, last_month)[1]", "28"),
        run_of("pruning/values/test_functions.py"),
    ),
    "a-constant-is-no-key": Mutant(
        *("pruning/values/functions.py", "if keys.intersect(constants).is_none:", "if True:"),
        run_of("pruning/values/test_functions.py"),
    ),
    "a-case-has-no-else": Mutant(
        *("pruning/query/key_functions.py", "(*parts[1::2], *parts[len(parts) - len(parts) % 2 :])", "parts[1::2]"),
        run_of("pruning/query/test_key_functions.py"),
    ),
    "a-null-key-of-not-in-is-ignored": Mutant(
        *("pruning/query/join_condition.py", "if self.null_aware and keys.null_rows:", "if False:"),
        run_of("pruning/query/test_planner.py"),
    ),
    "a-null-row-of-not-in-is-ignored": Mutant(
        *("pruning/query/build_selection.py", "if build_side.condition.null_aware and (", "if False and ("),
        run_of("pruning/query/test_planner.py"),
    ),
    "a-padded-side-of-not-in-is-filtered": Mutant(
        *("pruning/query/join_graph.py", "    return node.id == relation.id\n", "    return True\n"),
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-field-is-known-by-its-last-name": Mutant(
        *("pruning/query/struct_fields.py", "if each[: len(path)] == path}", "if each[-1:] == path[-1:]}"),
        run_of("pruning/query/test_struct_fields.py"),
    ),
    "a-column-is-a-unit": Mutant(
        *("pruning/query/key_functions.py", '"TruncTimestamp", (Expression(kind="Literal") as unit, inner)'),
        '"TruncTimestamp", (Expression() as unit, inner)',
        run_of("pruning/query/test_key_functions.py"),
    ),
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
    # ------------------------------------------------------------------------------------------------ keys
    "a-coarse-range-ends-early": Mutant(
        *("pruning/keys/sketch.py", "highs = lows + np.int64((1 << self.shift) - 1)", "highs = lows"),
        run_of("pruning/keys/test_summary.py"),
    ),
    "halves-of-a-bloom-filter-are-intersected": Mutant(
        *(
            "pruning/keys/bloom.py",
            "self.words[:half] | self.words[half:]",
            "self.words[:half] & self.words[half:]",
        ),
        run_of("pruning/keys/test_summary.py"),
    ),
    "a-hash-differs-from-sparks": Mutant(
        *("pruning/keys/xxhash64.py", "mixed = _rotated(mixed, 27)", "mixed = _rotated(mixed, 26)"),
        run_of("pruning/keys/test_xxhash64.py"),
    ),
    # ------------------------------------------------------------------------------------------------ queries
    "an-outer-join-filters-the-side-it-keeps": Mutant(
        *("pruning/query/lineage.py", "of_own.stands_alone and join.is_deterministic", "join.is_deterministic"),
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-group-loses-a-part-below-an-expression-that-may-raise": Mutant(
        *(
            "pruning/query/lineage.py",
            "(raises if isinstance(node, Grouping) else",
            '("" if isinstance(node, Grouping) else',
        ),
        run_of("pruning/query/test_pruned_plans.py"),
    ),
    "the-error-of-a-grouping-itself-is-forgotten": Mutant(
        *("pruning/query/lineage.py", "raises = self.raises or node.may_raise", "raises = self.raises"),
        run_of("pruning/query/test_pruned_plans.py"),
    ),
    "rows-are-padded-below-an-expression-that-may-raise": Mutant(
        *("pruning/query/lineage.py", "if loses_matches and above.raises and columns:", "if not columns:"),
        run_of("pruning/query/test_pruned_plans.py"),
    ),
    "one-branch-of-a-union-loses-rows-of-a-group": Mutant(
        *("pruning/query/lineage.py", "        if above.whole_for:\n", "        if not union:\n"),
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-filter-is-copied-to-a-cast-that-may-raise": Mutant(
        *("pruning/query/equal_columns.py", "if self.is_cast(each.column):", "if not probes:"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-filter-is-copied-to-a-computed-column-that-nothing-tests": Mutant(
        *("pruning/query/equal_columns.py", "if each not in tested and", "if False and"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-tested-computed-column-gets-no-filter": Mutant(
        *("pruning/query/equal_columns.py", "if each not in tested and", "if"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-side-whose-column-may-raise-is-broadcast": Mutant(
        *("pruning/query/broadcasts.py", "if _has_any(streamed, late) and is", "if not late and is"),
        run_of("pruning/query/test_broadcast.py"),
    ),
    "every-expression-keeps-its-side-streamed": Mutant(
        *("pruning/query/broadcasts.py", "if node.may_raise and isinstance(", "if isinstance("),
        run_of("pruning/query/test_broadcast.py"),
    ),
    "rows-that-a-build-has-not-read-raise-an-error": Mutant(
        *("pruning/query/build_selection.py", " or bool(self._raises_above(build_side))", ""),
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "statistics-bound-keys-of-fewer-rows-than-the-query-reads": Mutant(
        *("pruning/query/build_selection.py", ".leaves_out or self._raises_above(build_side):", ".leaves_out:"),
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "a-late-condition-that-may-raise-is-moved": Mutant(
        *("pruning/query/equal_columns.py", "            if self._late:\n", "            if False:\n"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-key-that-is-tested-for-null-refuses-every-filter": Mutant(
        *(
            "pruning/query/late_conditions.py",
            '"" if expression in tested_for_null(child) else node.may_raise',
            "node.may_raise",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "the-condition-of-a-late-join-cannot-raise": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "for part in parts) if is_late else",
            "for part in parts) if not is_late else",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-key-is-computed-for-rows-that-a-filter-drops": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "each.columns.issubset(side.output) and gives_every_row(side, null_columns(each))",
            "each.columns.issubset(side.output)",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-key-of-every-row-refuses-every-filter": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "if column in others or not gives_every_row(",
            "if not others or not gives_every_row(",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-computed-key-is-computed-for-every-row": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "if column in others or not gives_every_row(",
            "if column in others and not gives_every_row(",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-compared-column-is-computed-for-every-row": Mutant(
        *("pruning/query/late_conditions.py", "part.kind not in EQUALITIES))", "not part.kind))"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "an-unknown-operator-spares-a-late-condition": Mutant(
        *("pruning/query/late_conditions.py", "        case Limit() | Relation():", "        case Node():"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-literal-is-copied-where-an-outer-join-became-inner": Mutant(
        *("pruning/query/late_conditions.py", "if not stays or _may_get_conditions(join):", "if not stays:"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-null-in-another-column-spares-no-row": Mutant(
        *("pruning/query/late_conditions.py", "                and part.columns <= columns\n", ""),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-test-of-a-try-cast-spares-no-value": Mutant(
        *("pruning/query/late_conditions.py", "if len(computed) == 1 and node.may_raise", "if len(computed) == 1"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-test-beside-a-try-cast-spares-no-value": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "if len(computed) == 1 and node.may_raise",
            "if computed and node.may_raise",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-key-of-two-columns-raises-on-no-null": Mutant(
        *("pruning/query/late_conditions.py", "if len(columns) == 1 and _is", "if _is"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-default-for-null-raises-on-no-null": Mutant(
        *(
            "pruning/query/late_conditions.py",
            "len(columns) == 1 and _is_null_of_null(expression)",
            "len(columns) == 1",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-computed-key-is-computed-below-each-join": Mutant(
        *(
            "pruning/query/equal_columns.py",
            "if any(gives_every_row(side, frozenset({column})) for side in sides):",
            "if any(sides):",
        ),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-computed-key-of-every-row-gets-no-filter": Mutant(
        *("pruning/query/equal_columns.py", " and column not in keys)", ")"),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-command-refuses-what-gets-a-condition": Mutant(
        *("pruning/query/join_graph.py", "edges if by_file else [", "edges if not edges else ["),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-condition-beside-a-cast-is-tested-first": Mutant(
        *("pruning/query/equal_columns.py", "return isinstance(node, Filter) or not any(", "return not any("),
        run_of("pruning/query/test_equal_columns.py"),
    ),
    "a-remainder-of-decimals-raises-on-no-value": Mutant(
        *("pruning/query/fallible.py", "if any(child.type in _DECIMAL for child", "if any(not child.type for child"),
        run_of("pruning/query/test_fallible.py"),
    ),
    "a-cast-to-a-shorter-integer-is-0-for-0-alone": Mutant(
        *("pruning/query/fallible.py", "each.type == _INTEGER and each.mode != _LEGACY", "each.type == _INTEGER"),
        run_of("pruning/query/test_fallible.py"),
    ),
    "a-divisor-is-guarded-in-the-other-branch": Mutant(
        *("pruning/query/fallible.py", "_nonzero_if(condition, holds=True)", "_nonzero_if(condition, holds=False)"),
        run_of("pruning/query/test_fallible.py"),
    ),
    "traits-of-another-length-count": Mutant(
        *("pruning/query/fallible.py", 'traits if len(traits) == 2 * count else "--" * count', 'traits + "Tf" * count'),
        run_of("pruning/query/test_fallible.py"),
    ),
    "the-condition-of-a-join-above-a-group-is-forgotten": Mutant(
        *("pruning/query/edges.py", ", raises=raises or build_side.join.may_raise", ', raises=""'),
        run_of("pruning/query/test_pruned_plans.py"),
    ),
    "an-operand-without-a-key-is-forgotten": Mutant(
        *(
            "pruning/query/join_graph.py",
            "for each in disjunctions if each.keyless is None]",
            "for each in disjunctions]",
        ),
        run_of("pruning/query/test_pruned_plans.py"),
    ),
    "an-error-above-a-mark-is-forgotten": Mutant(
        *("pruning/query/disjunctions.py", "raises=raises or join.may_raise", 'raises=""'),
        run_of("pruning/query/test_disjunctions.py"),
    ),
    "each-operand-of-an-or-has-to-keep-a-container": Mutant(
        *("pruning/scan/skipping.py", "np.logical_and.reduce(gone)", "np.logical_or.reduce(gone)"),
        run_of("pruning/scan/test_disjunction.py"),
    ),
    "each-operand-of-a-pushed-or-has-to-overlap": Mutant(
        *("pruning/scan/disjunction.py", "found &= skips(level, name, domain)", "found |= skips(level, name, domain)"),
        run_of("pruning/scan/test_disjunction.py"),
    ),
    "a-random-filter-is-passed": Mutant(
        "pruning/query/lineage.py",
        "case Filter() | Project() | Grouping() | Generate() if not node.is_deterministic:",
        "case Filter() | Project() | Grouping() | Generate() if False:",
        run_of("pruning/query/test_join_graph.py"),
    ),
    "every-column-of-a-union-is-the-first": Mutant(
        *("pruning/query/lineage.py", "yield from self.down(child, child.output[place], above.through(union))"),
        "yield from self.down(child, child.output[0], above.through(union))",
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-null-safe-join-is-a-plain-one": Mutant(
        *("pruning/query/edges.py", 'bound, part.kind == "EqualNullSafe")', "bound, False)"),
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-random-join-is-an-edge": Mutant(
        *("pruning/query/join_graph.py", "elif not join.is_deterministic:", "elif False:"),
        run_of("pruning/query/test_join_graph.py"),
    ),
    "a-narrowing-cast-is-lossless": Mutant(
        "pruning/query/expressions.py",
        "INTEGER_BITS[from_type.name] < INTEGER_BITS[to_type.name]",
        "INTEGER_BITS[from_type.name] != INTEGER_BITS[to_type.name]",
        run_of("pruning/query/test_expressions.py"),
    ),
    "a-cast-that-drops-digits-is-lossless": Mutant(
        *("pruning/query/expressions.py", "from_type.scale <= to_type.scale and ", ""),
        run_of("pruning/query/test_expressions.py"),
    ),
    "a-branch-of-a-union-is-tested-by-the-others-conditions": Mutant(
        "pruning/query/key_origins.py",
        "child.output[node.output.index(column)], ())",
        "child.output[node.output.index(column)], conditions)",
        run_of("pruning/query/test_key_origins.py", "pruning/query/test_pruned_plans.py"),
    ),
    "unknown-origins-of-a-key-are-left-out": Mutant(
        *("pruning/query/key_origins.py", "return () if None in found else", "return () if not found else"),
        run_of("pruning/query/test_key_origins.py", "pruning/query/test_pruned_plans.py"),
    ),
    "a-build-side-that-cannot-repeat-its-rows-is-run": Mutant(
        "pruning/query/build_selection.py",
        "if node.kind not in _REPEATABLE or not node.is_deterministic:",
        "if not node.is_deterministic:",
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "an-aggregate-that-depends-on-order-repeats-its-rows": Mutant(
        "pruning/query/build_selection.py",
        "return node.order_free or (groups is not None and groups.keys() >= set(node.output))",
        "return True",
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "a-build-does-not-wait-for-the-filters-inside-of-it": Mutant(
        "pruning/query/filter_plan.py",
        "return is_split or any(each.probe.relation.id in inside for each in others)",
        "return is_split",
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "deleted-rows-are-among-the-first": Mutant(
        *("pruning/query/top_k.py", "np.where(gone < present, present - gone, 0)", "present"),
        run_of("pruning/query/test_top_k.py"),
    ),
    "nan-is-no-greatest-number": Mutant(
        *("pruning/query/top_k.py", "known &= ~column.may_have_nan", "pass"),
        run_of("pruning/query/test_top_k.py"),
    ),
    # ------------------------------------------------------------------------------------------------ the cost model
    "a-build-of-many-rows-runs-once": Mutant(
        *("pruning/query/benefit.py", "expected = run - spared if self.fits(node) else run", "expected = run - spared"),
        run_of("pruning/query/test_benefit.py"),
    ),
    "keys-of-one-column-are-independent": Mutant(
        *("pruning/query/benefit.py", "return min(known_rows, rows), min(known_bytes, kept)"),
        "return known_rows * rows, known_bytes * kept",
        run_of("pruning/query/test_benefit.py"),
    ),
    "a-row-filter-costs-nothing": Mutant(
        *("pruning/query/benefit.py", " - reading * test)", ")"),
        run_of("pruning/query/test_benefit.py"),
    ),
    "scattered-keys-lie-together": Mutant(
        *("pruning/query/benefit.py", "return 1.0 - (1.0 - whole) ** keys if keys < 1e9 else 1.0", "return whole"),
        run_of("pruning/query/test_benefit.py"),
    ),
    "a-filter-without-a-gain-is-chosen": Mutant(
        *("pruning/query/filter_choice.py", "elif best.benefit.gain <= 0:", "elif best.benefit.gain < -1e9:"),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-likely-gain-is-no-matter": Mutant(
        *("pruning/query/benefit.py", "return risk <= self.limits.risked_gain * min(", "return risk <= 0.0 * min("),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-gain-has-no-limit": Mutant(
        *("pruning/query/benefit.py", "risked_gain * min(gain, self.surely(root))", "risked_gain * gain"),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-risky-filter-is-called-a-dear-one": Mutant(
        *(
            "pruning/query/filter_choice.py",
            "ReasonCode.RISKY if best.id in self.risky else",
            "ReasonCode.RISKY if False else",
        ),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-scan-that-was-read-is-filtered-later": Mutant(
        *(
            "pruning/query/cascades.py",
            "if not (node.contains(scan) or read.contains(scan))",
            "if not node.contains(scan)",
        ),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-small-scan-is-filtered-for-itself-alone": Mutant(
        *("pruning/query/cascades.py", "return max(gained, default=0.0)", "return 0.0"),
        run_of("golden/test_machines.py"),
    ),
    "a-useful-filter-stays-idle": Mutant(
        *("pruning/query/lessons.py", "if each not in outcome.useful}", "if each}"),
        run_of("pruning/query/test_lessons.py"),
    ),
    "a-shape-has-literals": Mutant(
        *("pruning/query/lessons.py", 'text = "" if expression.kind == _LITERAL else', "text = "),
        run_of("pruning/query/test_lessons.py"),
    ),
    "the-text-of-an-instant-is-in-utc": Mutant(
        *(
            "pruning/query/expressions.py",
            "return micros - ZONE_MARGIN, micros + ZONE_MARGIN +",
            "return micros, micros +",
        ),
        run_of("pruning/query/test_static_filters.py"),
    ),
    "a-domain-of-instants-has-none-but-the-literal": Mutant(
        *("pruning/query/sure_rows.py", '{"float", "double", "timestamp"}', '{"float", "double"}'),
        run_of("pruning/query/test_sure_rows.py"),
    ),
    "a-list-has-one-value": Mutant(
        *(
            "pruning/query/selectivity.py",
            "_of_several(shares[0], len(condition.children) - 1)",
            "_of_several(shares[0], 1)",
        ),
        run_of("pruning/query/test_selectivity.py"),
    ),
    "values-of-one-file-are-those-of-a-sorted-table": Mutant(
        *("pruning/query/known_statistics.py", "min(least / in_file / in_files, float(rows))", "least"),
        run_of("pruning/query/test_planner.py"),
    ),
    "a-dictionary-tells-all-values-of-texts": Mutant(
        *("pruning/query/known_statistics.py", "distinct.sum() * _DISTINCT_ERROR >= ", "distinct.sum() >= "),
        run_of("pruning/query/test_planner.py"),
    ),
    "texts-have-no-length": Mutant(
        *("connectors/parquet/footer.py", "(_LENGTHS[physical] + length) * _BYTES_SHRINK", "float(_LENGTHS[physical])"),
        run_of("connectors/parquet/test_row_groups.py"),
    ),
    "an-abandoned-dictionary-tells-all-values": Mutant(
        *("connectors/parquet/footer.py", "if not _uses_only_dictionary(data, offsets):", "if False:"),
        run_of("connectors/parquet/test_row_groups.py"),
    ),
    "a-column-without-a-dictionary-has-many-values": Mutant(
        *("connectors/parquet/footer.py", "return values if _PLAIN in read(", "return values if None not in read("),
        run_of("connectors/parquet/test_row_groups.py"),
    ),
    "values-that-may-repeat-never-do": Mutant(
        *("pruning/query/cardinality.py", "1 / sqrt(least * values), 1 / least)", "1 / values, 1 / values)"),
        run_of("pruning/query/test_cardinality.py"),
    ),
    "ranks-limit-nothing": Mutant(
        *(
            "pruning/query/cardinality.py",
            "return min(float(most), self.rows(node.children[0]))",
            "return self.rows(node.children[0])",
        ),
        run_of("pruning/query/test_cardinality.py"),
    ),
    "a-risk-is-no-matter": Mutant(
        *(
            "pruning/query/filter_choice.py",
            "at_risk := self._at_risk_with(best.benefit)) > self.risked",
            "at_risk := 0.0) > 0",
        ),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "what-others-leave-is-no-matter": Mutant(
        *("pruning/query/filter_choice.py", "self.left[each.probe.relation.id] = effect.left", "pass"),
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "a-build-is-paid-for-each-scan": Mutant(
        *("pruning/query/filter_choice.py", "found.setdefault(each.build_side.node.id, [])"),
        "found.setdefault(each.probe.relation.id, [])",
        run_of("pruning/query/test_filter_choice.py"),
    ),
    "keys-that-filter-a-scan-count-twice": Mutant(
        *("pruning/query/cardinality.py", "if self._is_applied(side, probe):", "if False:"),
        run_of("pruning/query/test_cardinality.py"),
    ),
    "an-anti-join-keeps-the-rows-with-a-partner": Mutant(
        *("pruning/query/cardinality.py", "1 - self._matching(join, left_is_probe=True)"),
        "self._matching(join, left_is_probe=True)",
        run_of("pruning/query/test_cardinality.py"),
    ),
    "metadata-of-one-place-ends-an-exchange-reuse": Mutant(
        *("pruning/query/filter_plan.py", "with_shared_exchanges(wanted, done, selection)", "wanted"),
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "united-keys-drop-the-rows-of-each-of-them": Mutant(
        *("pruning/query/reuse_choice.py", "max(0.0, 1.0 - sum(shares)) / dropped", "1.0"),
        run_of("pruning/query/test_filter_plan.py"),
    ),
    "united-keys-are-those-of-one-build": Mutant(
        *("pruning/keys/union.py", "reduce(Domain.union, (each.domain for each in columns))", "columns[0].domain"),
        run_of("pruning/keys/test_union.py"),
    ),
    "keys-of-a-place-filter-it-without-those-of-the-others": Mutant(
        *("pruning/query/planner.py", "not found.keys() >= set(ids) or ", ""),
        run_of("pruning/query/test_planner.py"),
    ),
    "united-keys-lack-those-of-other-places": Mutant(
        *("pruning/query/planner.py", "united([found[it] for it in ids]) if each.united else", ""),
        run_of("pruning/query/test_planner.py"),
    ),
    "spark-copies-no-conditions": Mutant(
        *("pruning/query/exchange_reuse.py", "copied_conditions(root) if is_shared else {}", "{}"),
        run_of("pruning/query/test_reuse.py"),
    ),
    "a-filter-from-metadata-shrinks-scans-that-have-not-been-planned": Mutant(
        *("pruning/query/expected_sizes.py", "if each.from_metadata:", "if False:"),
        run_of("pruning/query/test_expected_sizes.py"),
    ),
    "a-table-without-files-gives-keys": Mutant(
        *("pruning/query/build_selection.py", "return node.id in sizes.files", "return True"),
        run_of("pruning/query/test_filter_plan.py"),
    ),
    # ------------------------------------------------------------------------------------------------ planner
    "a-null-among-keys-of-a-null-safe-join-is-dropped": Mutant(
        *("pruning/query/join_condition.py", "if self.null_safe and keys.null_rows:", "if False:"),
        run_of("pruning/query/test_planner.py"),
    ),
    "a-bound-is-an-equality": Mutant(
        "pruning/query/join_condition.py",
        "return keys if self.bound is None else bounded(keys, self.bound)",
        "return keys",
        run_of("pruning/query/test_planner.py"),
    ),
    "rows-that-may-differ-are-keys-without-being-joined": Mutant(
        *("pruning/query/planner.py", "if runtime_filter.needs_rows and not_joined:", "if False:"),
        run_of("pruning/query/test_planner.py"),
    ),
    "a-scalar-subquery-of-several-rows-gives-keys": Mutant(
        *("pruning/query/join_condition.py", "if self.is_scalar and keys.rows > 1:", "if False:"),
        run_of("pruning/query/test_scalars.py"),
    ),
    "statistics-bound-a-subquery-of-several-rows": Mutant(
        *(
            "pruning/query/join_condition.py",
            "return self.condition.is_scalar and not is_one_row(self.node)",
            "return False",
        ),
        run_of("pruning/query/test_scalars.py"),
    ),
    "an-empty-side-hides-an-error-of-a-subquery": Mutant(
        *(
            "pruning/query/join_condition.py",
            "if any(not each.contains(at) for each in plans):",
            "if False:",
        ),
        run_of("pruning/query/test_planner.py"),
    ),
    "files-that-cannot-be-pinned-give-keys": Mutant(
        *("pruning/query/planner.py", "self._files -= refused.keys()", "pass"),
        run_of("pruning/query/test_planner.py"),
    ),
    "spark-prunes-partitions-by-a-build-that-is-gone": Mutant(
        *("pruning/query/broadcasts.py", "is_reached = facts.partitions <= reached", "is_reached = True"),
        run_of("pruning/query/test_planner.py"),
    ),
    # ------------------------------------------------------------------------------------------------ one scan
    "nan-keys-are-pushed-as-ranges": Mutant(
        *("pruning/scan/pushdown.py", "if domain.nan else None", "if False else None"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "an-exact-read-is-not": Mutant(
        *(
            "pruning/scan/scan_plan.py",
            "    if capabilities.must_be_exact:\n        return RowFilter.SEMI_JOIN, ()\n",
            "",
        ),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "null-that-matches-is-not-pushed": Mutant(
        "pruning/scan/pushdown.py",
        "return PushedPredicate(name, ranges, skipped, size, keys.null)",
        "return PushedPredicate(name, ranges, skipped, size)",
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "files-of-null-are-counted-as-skipped": Mutant(
        *("pruning/scan/pushdown.py", "return Domain(self.ranges, self.null)", "return Domain(self.ranges)"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "null-that-matches-is-tested-by-a-bloom-filter": Mutant(
        *("pruning/scan/scan_plan.py", "if any(domain.null for", "if any(False for"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "inexact-keys-are-tested-by-a-bitmap": Mutant(
        *("pruning/scan/scan_plan.py", "if not each.is_exact or len(each.domains) != 1", "if len(each.domains) != 1"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "words-of-a-bitmap-begin-at-its-first-code": Mutant(
        *("pruning/keys/bitmap.py", "first = int(codes.min()) // _WORD * _WORD", "first = int(codes.min())"),
        run_of("pruning/keys/test_bitmap.py"),
    ),
    "a-list-of-floats-tells-zeros-apart": Mutant(
        *("pruning/scan/scan_plan.py", " and not domain.type.is_float", ""),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    # ------------------------------------------------------------------------------------------------ results
    "what-is-planned-is-reported-as-the-whole": Mutant(
        "pruning/results/prune_report.py",
        "size(measured.bytes_scanned), size(table.bytes_kept), size(table.bytes_total)",
        "size(measured.bytes_scanned), size(table.bytes_total), size(table.bytes_kept)",
        run_of("pruning/results/test_render.py"),
    ),
    # ------------------------------------------------------------------------------------------------ connectors
    "bounds-that-are-no-values-are-believed": Mutant(
        *(
            "connectors/parquet/bounds.py",
            "if low is _WRONG or high is _WRONG:",
            "if low is _WRONG and high is _WRONG:",
        ),
        run_of("connectors/parquet/test_bounds.py"),
    ),
    "old-bounds-of-bytes-are-believed": Mutant(
        *("connectors/parquet/bounds.py", "takes_old=leaf.physical not in BYTE_ARRAYS", "takes_old=True"),
        run_of("connectors/parquet/test_bounds.py"),
    ),
    "bytes-without-an-order-are-bounds-of-text": Mutant(
        *("connectors/parquet/bounds.py", "if codes is None or not is_believed(leaf, type_):", "if codes is None:"),
        run_of("connectors/parquet/test_orders.py"),
    ),
    "integers-of-another-width-have-an-order": Mutant(
        *("connectors/parquet/orders.py", " if fits else None", ""),
        run_of("connectors/parquet/test_orders.py"),
    ),
    "cut-decimals-are-believed": Mutant(
        *("connectors/parquet/bounds.py", 'must_be_whole=leaf.annotation.kind == "DECIMAL"', "must_be_whole=False"),
        run_of("connectors/parquet/test_writers.py"),
    ),
    "a-writer-that-errs-is-believed": Mutant(
        *("connectors/parquet/row_groups.py", "believed = fault is not Fault.BOUNDS", "believed = True"),
        run_of("connectors/parquet/test_writers.py"),
    ),
    "indexes-of-a-writer-that-errs-meet-a-predicate": Mutant(
        "connectors/parquet/row_groups.py",
        "*(each.column.name for each in gathered.series if each.is_misled)",
        "*()",
        run_of("connectors/parquet/test_writers.py"),
    ),
    "texts-are-copied-to-files-whose-footers-nobody-read": Mutant(
        *("connectors/pipeline/copied_conditions.py", "        table.row_groups(np.arange(count), [column], ())\n", ""),
        run_of("connectors/pipeline/test_copied_conditions.py"),
    ),
    "numbers-are-copied-to-files-whose-footers-nobody-read": Mutant(
        *("connectors/pipeline/copied_conditions.py", "count = len(table.files([column]))", "count = 1"),
        run_of("connectors/pipeline/test_copied_conditions.py"),
    ),
    "every-version-of-a-writer-errs": Mutant(
        *("connectors/parquet/writers.py", "            and writer.version < self.fixed\n", ""),
        run_of("connectors/parquet/test_writers.py"),
    ),
    "every-writer-orders-strings-by-bytes": Mutant(
        *("connectors/parquet/footer.py", "return self.writer.orders_bytes()", "return True"),
        run_of("connectors/parquet/test_writers.py"),
    ),
    "files-that-name-no-order-have-none": Mutant(
        *("connectors/parquet/footer.py", "case Order.SIGNED | Order.FLOAT:", "case Order.FLOAT:"),
        run_of("connectors/parquet/test_writers.py"),
    ),
    "keys-ask-the-bloom-filters-of-files": Mutant(
        *("connectors/scan/literals.py", 'if low == high and ranges.type.name == "boolean":', "if low == high:"),
        run_of("connectors/scan/test_literals.py"),
    ),
    "lists-of-keys-ask-the-bloom-filters-of-files": Mutant(
        "connectors/scan/literals.py",
        "listed if is_listed else hidden_sql(listed)",
        "listed",
        run_of("connectors/scan/test_literals.py"),
    ),
    "lists-of-keys-ask-bloom-filters-of-files-with-some": Mutant(
        *("pruning/scan/scan_plan.py", "not column.may_have_bloom_filters and capabilities", "capabilities"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "one-row-group-without-a-bloom-filter-tells-of-all": Mutant(
        *("pruning/scan/statistics.py", "bool(self.has_bloom_filter.any())", "bool(self.has_bloom_filter.all())"),
        run_of("pruning/scan/test_scan_plan.py"),
    ),
    "footers-tell-of-no-bloom-filter": Mutant(
        *(
            "connectors/parquet/footer.py",
            "ChunkMetadata(statistics, distinct, _BLOOM in offsets)",
            "ChunkMetadata(statistics, distinct, False)",
        ),
        run_of("connectors/parquet/test_row_groups.py"),
    ),
    "an-unread-footer-has-no-bloom-filter": Mutant(
        *(
            "connectors/parquet/row_groups.py",
            "        has_bloom_filter: bool = True,\n",
            "        has_bloom_filter: bool = False,\n",
        ),
        run_of("connectors/parquet/test_row_groups.py"),
    ),
    "copies-of-a-list-ask-bloom-filters": Mutant(
        "connectors/pipeline/copied_conditions.py",
        "return seen is not None and not seen.may_have_bloom_filters",
        "return seen is not None",
        run_of("connectors/pipeline/test_copied_conditions.py"),
    ),
    "only-nan-is-a-wrong-order": Mutant(
        *("connectors/delta/bounds.py", " & ~coded(highs, type_).nan).any())", ").any())"),
        run_of("connectors/delta/test_bounds.py"),
    ),
    "days-of-the-julian-calendar-are-believed": Mutant(
        *("connectors/parquet/bounds.py", "_least_trusted(type_) if is_rebased and not is_gregorian else None", "None"),
        run_of("connectors/parquet/test_bounds.py"),
    ),
    "names-of-a-mapping-that-is-off-count": Mutant(
        *("connectors/delta/field_metadata.py", "field.name if self.mode == _OFF else _noted_name(field)"),
        "_noted_name(field)",
        run_of("connectors/delta/test_field_metadata.py"),
    ),
    "stale-names-of-fields-are-not-seen": Mutant(
        *(
            "connectors/delta/field_metadata.py",
            "            yield from _fields(field.dataType)\n",
            "            pass\n",
        ),
        run_of("connectors/delta/test_field_metadata.py"),
    ),
    "no-name-is-stale": Mutant(
        *("connectors/delta/field_metadata.py", "if self.mode != _OFF:\n", "if self.mode:\n"),
        run_of("connectors/delta/test_field_metadata.py"),
    ),
    "generated-columns-count-in-every-protocol": Mutant(
        *("connectors/delta/field_metadata.py", ' if self.generates else ""', ""),
        run_of("connectors/delta/test_field_metadata.py"),
    ),
    "counts-of-null-beside-deleted-rows-are-believed": Mutant(
        *("connectors/delta/statistics.py", "~has_vector(table) | (nulls == 0)", "(nulls <= rows)"),
        run_of("connectors/delta/test_counts.py"),
    ),
    "as-many-nulls-as-rows-are-believed-without-wide-bounds": Mutant(
        *("connectors/delta/statistics.py", "((nulls == rows) & _is_wide(table))", "(nulls == rows)"),
        run_of("connectors/delta/test_counts.py"),
    ),
    "delta-is-asked-in-spite-of-mixed-counts": Mutant(
        *("connectors/delta/bounds.py", "            or flaws.miscounted\n", ""),
        run_of("connectors/delta/test_counts.py"),
    ),
    "more-nulls-than-rows-mislead-nothing": Mutant(
        *("connectors/delta/statistics.py", "(nulls >= rows)", "(nulls == rows)"),
        run_of("connectors/delta/test_counts.py"),
    ),
    "an-effect-beside-a-scan-is-overlooked": Mutant(
        *("pruning/query/effects.py", "and not each.contains(at)", "and each.id < at"),
        run_of("pruning/query/test_effects.py"),
    ),
    "a-step-of-a-recursion-runs-once-for-all": Mutant(
        *("pruning/query/build_selection.py", 'each.kind == "UnionLoop"', 'each.kind == ""'),
        run_of("pruning/query/test_effects.py"),
    ),
}
INTACT = {
    "core": Mutant("pruning/errors.py", "class PruningError", "class PruningError"),
    "delta": Mutant("pruning/errors.py", "class PruningError", "class PruningError", DELTA_CHECKS),
    "tests": Mutant(
        "pruning/errors.py",
        "class PruningError",
        "class PruningError",
        run_of(
            *("pruning/query/test_join_graph.py", "connectors/parquet/test_bounds.py"),
            *("connectors/delta/test_counts.py", "connectors/delta/test_field_metadata.py"),
        ),
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The output of the checks of every mutant, of two at a time."""
    everything, folder = INTACT | MUTANTS, tmp_path_factory.mktemp("mutants")
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: everything[name].run(folder / name), everything)
        return dict(zip(everything, found, strict=True))


@pytest.mark.parametrize("name", INTACT)
def test_checks_pass_without_a_mutation(name, outcomes):
    assert "" == outcomes[name]


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_fails_its_checks(name, outcomes):
    assert "AssertionError" in outcomes[name], outcomes[name] or "the checks passed"
