"""Benchmarks; their recorded results are committed in `results/`."""

import os

# Decisions repeat on any machine by default rates, whatever was calibrated or seen there.
os.environ.setdefault("SCANPRUNE_COST_RATES", "GIVEN")
