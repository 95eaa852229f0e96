"""Examples of README run one after the other in the session of a user, and prune; `test_servers` has the servers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

from pruning import disable, history, report
from sample_data.rows import Rows

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
ENABLE, MERGE, STREAM, PRUNE, READ = EXAMPLES


@pytest.mark.full
@pytest.mark.slow
def test_examples_run_and_prune(spark, capsys):
    names: dict[str, object] = {}

    def run(example: str) -> None:
        exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - the example as it stands

    try:
        run(ENABLE)
        verdict = next(line for line in ENABLE.splitlines() if "history(spark)[0])" in line).split("# ")[1]
        assert verdict.split(" (")[0] == history(spark)[0].verdict.split(" (")[0]
        check_notebook(spark, names)
        run(MERGE)
        orders = f"delta.`{names['lake']}/orders`"
        assert (1, 40) == searched(spark)
        assert [500] == [row[0] for row in spark.sql(f"SELECT count(*) FROM {orders} WHERE price = -1").collect()]
        spark.sql(f"UPDATE {orders} SET price = 0 WHERE price = -1")
        run(STREAM)
        assert 1 == searched(spark)[0]
        assert [500] == [row[0] for row in spark.sql(f"SELECT count(*) FROM {orders} WHERE price = -1").collect()]
        run(PRUNE)
        stock = Rows(names["query"].collect())
        assert stock == Rows(names["pruned"].collect())
        assert report(names["pruned"]).verdict.startswith("read 2 of 40 files")
        run(READ)
        assert report(names["sales"]).verdict.startswith("read 2 of 40 files")
        assert stock == Rows(names["sales"].join(names["july"], "day").groupBy("month").sum("price").collect())
    finally:
        disable(spark)
        for name in ("sales", "days"):
            spark.catalog.dropTempView(name)
    printed = capsys.readouterr().out
    assert re.search(r"^read 2 of 40 files \(.*\): sales\.day by days\.day$", printed, re.MULTILINE)
    assert re.search(r"^read 1 of 40 files \(.*\): orders\.id by changes\.id$", printed, re.MULTILINE)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.spark
def test_examples_run_in_a_process_of_their_own(tmp_path):
    """As a new user runs them, who has no session yet."""
    program = tmp_path / "examples.py"
    program.write_text("\n".join(EXAMPLES), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, program],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    for found in (
        r"read 2 of 40 files \(.*\): sales\.day by days\.day",
        r"read 1 of 40 files \(.*\): orders\.id by changes",
    ):
        assert re.search(f"^{found}", done.stdout, re.MULTILINE)
    assert "Traceback" not in done.stderr


def check_notebook(spark, names: dict[str, object]) -> None:
    """The expression that README names, at the end of a cell, shows the latest query; then a query without a join."""
    (expression,) = re.findall(r"In a notebook, `(.*?)` at the\s+end of a cell is a table", README.read_text("utf-8"))
    shown = of_cell(f"latest = len(history(spark))\n{expression}", names)
    assert "<table" in shown
    assert escape(history(spark)[0].verdict) in shown
    of_cell('spark.sql("SELECT count(*) FROM sales").show()', names)
    assert "nothing to prune: no join" in of_cell(expression, names)


def of_cell(source: str, names: dict[str, object]) -> str:
    """The HTML that a notebook shows below a cell that has run: that of the expression at its end, empty for None."""
    cell = ast.parse(source)
    last = cell.body.pop() if isinstance(cell.body[-1], ast.Expr) else None
    exec(compile(cell, "a cell", "exec"), names)  # noqa: S102 - the example as it stands
    found = None if last is None else eval(compile(ast.Expression(last.value), "a cell", "eval"), names)  # noqa: S307
    return "" if found is None else found._repr_html_()


def searched(spark) -> tuple[int, int]:
    """The files of its target that the latest MERGE searched, and all of them."""
    planned = (table.planned for told in history(spark) for table in told.tables if "orders" in table.planned.table)
    # The files that are written anew have no filter.
    first = next(each for each in planned if each.filters)
    return first.files_kept, first.files_total
