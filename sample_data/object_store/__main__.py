"""The command `python -m sample_data.object_store`: builds the server if it is missing, and prints its path."""

from __future__ import annotations

import sys

from pruning.errors import EnvironmentProblem
from sample_data.object_store.gateway import gateway

if __name__ == "__main__":
    try:
        sys.stdout.write(f"{gateway()}\n")
    except EnvironmentProblem as error:
        sys.exit(str(error))
