"""A stand-in engine whose queries are commands such as `sleep 1`, for tests of workers without a real engine."""

from __future__ import annotations

import os
import sys
import time
from datetime import date
from decimal import Decimal

from benchmarks.contest.protocol import Unsupported, serve
from sample_data.object_store.store import Access
from sample_data.tpcds_queries import Answer

ROW = (1, Decimal("1.50"), date(2000, 1, 2), "é", None, 0.1)


class StandIn:
    def __init__(self):
        self.names = []

    def tables(self, tables):
        self.names = [each.name for each in tables]

    def answer(self, contender, query):
        match query.split():
            case ["sleep", seconds]:
                time.sleep(float(seconds))
            case ["fetch", *paths]:
                store = Access.of_environment().filesystem()
                for path in paths:
                    with store.open_input_stream(path) as file:
                        file.read()
            case ["end"]:
                os._exit(3)
            case ["fail"]:
                raise ValueError("no such column\nat line 1")
            case ["refuse"]:
                raise Unsupported("no such function")
            case ["print"]:
                sys.stdout.write("a line that is no answer\n")
                sys.stdout.flush()
            case ["limited", size]:
                return Answer(("bigint",), ((int(size),),))
            case ["names"]:
                return Answer(("string", "string"), tuple((contender, name) for name in self.names))
        return Answer(("int", "decimal(3,2)", "date", "string", "void", "double"), (ROW,))

    def exchanged(self):
        return 7


if __name__ == "__main__":
    serve(StandIn)
