"""`QueryOrigin`: what tells one query of a session from others, and whether it is one that is looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OF_FILES = re.compile(r"\w+\.`(.*)`")
_LOCAL = re.compile(r"file:/+")


@dataclass(frozen=True, slots=True)
class QueryOrigin:
    """The execution of a query, and what its caller had set.

    - `execution_id`: the id in Spark's SQL tab and status store; None for a query that was planned before it ran, such
      as a micro-batch, or the rows of `cache()`
    - `root_execution_id`: that of the command that ran the query, such as a MERGE; the same id where there is none
    - `job_group`: by `setJobGroup()`, of a stream the id of its run; None without one
    - `tags`: by `addTag()` of the session, and `addJobTag()` of its context
    - `tables`: the tables of files that it reads, each by its name in the catalog, if it has one, and by its paths
    """

    execution_id: int | None = None
    root_execution_id: int | None = None
    job_group: str | None = None
    tags: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    def reads(self, table: str) -> bool:
        """True if the query reads a table, named by its path, or by the last parts of its path or name.

        >>> found = QueryOrigin(tables=("spark_catalog.shop.sales", "file:/lake/sales"))
        >>> found.reads("sales"), found.reads("shop.sales"), found.reads("/lake/sales")
        (True, True, True)
        >>> found.reads("ales"), found.reads("lake"), found.reads("/sales")
        (False, False, False)
        """
        return any(_is_named(each, table) for each in self.tables)

    def is_of(self, execution: int) -> bool:
        """True if the query is an execution, or if a command ran it that is one."""
        return execution in {self.execution_id, self.root_execution_id}


def _is_named(found: str, wanted: str) -> bool:
    if "/" not in found:
        names = [each.strip("`").casefold() for each in wanted.split(".")]
        return names == found.casefold().split(".")[-len(names) :]
    of_files = _OF_FILES.fullmatch(wanted)
    path, own = (_LOCAL.sub("/", each).rstrip("/") for each in (of_files[1] if of_files else wanted, found))
    # A table of files may be read by some of its folders.
    is_inside = "/" in path and f"{own}/".startswith(f"{path}/")
    return is_inside or (not path.startswith("/") and own.endswith(f"/{path}"))
