"""Gives all test folders the fixtures, marks and options of `tests/plugin.py`."""

pytest_plugins = ["tests.plugin"]
