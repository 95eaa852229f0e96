"""The command `python -m benchmarks`: every benchmark, at any scale."""

from __future__ import annotations

import typer

from benchmarks import ablation, doors, exchanges, model, run, tpcds_bytes, tpcds_queries
from benchmarks.contest import __main__ as contest

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("parts")(run.main)
app.command("contest")(contest.main)
app.command("model")(model.main)
app.command("ablation")(ablation.main)
app.command("doors")(doors.main)
app.command("exchanges")(exchanges.main)
app.command("joins")(tpcds_bytes.main)
app.command("queries")(tpcds_queries.main)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
