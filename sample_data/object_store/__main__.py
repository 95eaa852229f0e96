"""`python -m benchmarks.object_store`: builds the server where it is missing, and says where it is."""

from __future__ import annotations

import sys

from benchmarks.object_store.gateway import gateway
from pruning.errors import EnvironmentProblem

if __name__ == "__main__":
    try:
        print(gateway())
    except EnvironmentProblem as error:
        sys.exit(str(error))
