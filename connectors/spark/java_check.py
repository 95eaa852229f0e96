"""A check of the Java that Spark will start.

The module uses only the standard library, so that `make` can run this file before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
_REMEDY = f"install a JDK or JRE, version {OLDEST} or newer, and put it on PATH or point JAVA_HOME to it"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_problem() -> str | None:
    """The reason why Spark cannot start on this machine's Java, as one line with the remedy; None if it can."""
    home = os.environ.get("JAVA_HOME")
    # Spark's launcher does not look at PATH when JAVA_HOME is set.
    java = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        found = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "no JAVA_HOME, no java on PATH"
        return f"Spark needs Java {OLDEST} or newer; found {found}: {_REMEDY}"
    major = _major_version(java)
    if major is None:
        return f"Spark needs Java {OLDEST} or newer; {java!r} does not tell a version: {_REMEDY}"
    if major < OLDEST:
        return f"Spark needs Java {OLDEST} or newer; {java!r} is Java {major}: {_REMEDY}"
    return None


def _major_version(java: str, seconds: float = 30.0) -> int | None:
    """The major version, 17 for `17.0.15`, 8 for `1.8.0_392`; None if the program is not a working Java."""
    try:
        answer = subprocess.run(  # noqa: S603  the path comes from the user's own environment
            [java, "-version"], capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(answer.stderr + answer.stdout)
    return int(version[1]) if version else None


if __name__ == "__main__":
    sys.exit(java_problem())
