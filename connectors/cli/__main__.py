"""`python -m connectors.cli`: the same as the console script `scanprune`."""

from connectors.cli.main import main

main()
