"""Files of rates: one for a machine and one for each store, which are ignored where they cannot be read."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from connectors import rate_files
from connectors.rate_files import MeasuredRates, machine_rates, rate_file, store_name, user_cache, write_rates
from pruning.cost.rates import CostRates
from pruning.errors import EnvironmentProblem


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rate_files.forget_files()
    yield tmp_path
    rate_files.forget_files()


def written(text: str, store: str = "local") -> Path:
    file = rate_file(store)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_defaults_without_a_file(caplog):
    with caplog.at_level(logging.DEBUG, "scanprune"):
        assert CostRates() == machine_rates()
    assert [] == caplog.messages


def test_written_rates_are_read():
    file = write_rates(MeasuredRates.now({"byte": 0.25, "build_job": 5e7}))
    assert replace(CostRates(), byte=0.25, build_job=5e7) == machine_rates()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert {"format", "date", "cores", "rates"} == found.keys()
    assert 4 == found["format"]
    assert [file] == list(file.parent.iterdir())


def test_all_rates_round_trip():
    rates = asdict(CostRates())
    assert rates == MeasuredRates.parse(str(MeasuredRates.now(rates))).rates


def test_file_is_named_by_the_machine(cache):
    file = rate_file()
    assert cache / "scanprune" / "rates" == file.parent.parent
    assert (rate_files.machine_name(), "local.json") == (file.parent.name, file.name)
    name, _, digest = file.parent.name.rpartition("-")
    assert name
    assert 8 == len(digest)


def test_relative_cache_folder_is_not_used(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert Path.home() / ".cache" / "scanprune" == user_cache()


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("/data", "local"),
        ("data", "local"),
        ("file:///data", "local"),
        ("s3a://lake/a", "s3a-lake"),
        ("s3a://lake", "s3a-lake"),
        ("hdfs://node:9000/a", "hdfs-node_9000"),
        ("abfss://box@account.dfs.example.com/a", "abfss-account.dfs.example.com"),
        ("hdfs:///a", "hdfs-"),
        ("s3a://../../x", "s3a-.."),
    ],
)
def test_stores_are_named_by_scheme_and_authority(uri, name):
    assert name == store_name(uri)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", "found no 'rates'"),
        ('{"format": 4}', "found no 'rates'"),
        ('{"rates": {"byte": 2.0}}', "found format None, expected 4"),
        ('{"format": 3, "rates": {"byte": 2.0}}', "found format 3, expected 4"),
        ('{"format": 5, "rates": {"byte": 2.0}}', "found format 5, expected 4"),
        ('{"format": 4, "rates": {"byte": "2.0"}}', "found '2.0' for 'byte'"),
        ('{"format": 4, "rates": {"byte": true}}', "found True for 'byte'"),
        ('{"format": 4, "rates": {"byte": -1}}', "found byte=-1.0, expected nanoseconds"),
        ('{"format": 4, "rates": {"byte": NaN}}', "found byte=nan, expected nanoseconds"),
        ('{"format": 4, "rates": {"byte": 1' + "0" * 400 + "}}", "too large"),
        ("[" * 100_000, "recursion"),
    ],
    ids=["empty", "cut", "list", "rates", "format", "old", "new", "text", "bool", "negative", "nan", "large", "deep"],
)
def test_file_of_another_form_is_ignored_with_one_line(caplog, text, told):
    file = written(text)
    with caplog.at_level(logging.INFO, "scanprune"):
        assert [CostRates()] * 3 == [machine_rates() for _ in range(3)]
    (line,) = caplog.messages
    assert told in line
    assert str(file) in line


def test_file_that_is_no_text_is_ignored():
    written("").write_bytes(b"\xff\xfe\x00")
    assert CostRates() == machine_rates()


def test_folder_in_the_place_of_a_file_is_ignored():
    rate_file().mkdir(parents=True)
    assert CostRates() == machine_rates()


def test_unknown_names_are_left_out(caplog):
    written(json.dumps({"format": 4, "rates": {"byte": 0.5, "page": 3, "driver": "x"}}))
    with caplog.at_level(logging.DEBUG, "scanprune"):
        assert replace(CostRates(), byte=0.5) == machine_rates()
    assert ["Rates of unknown names are left out: driver, page"] == caplog.messages


def test_file_is_read_once(monkeypatch):
    write_rates(MeasuredRates.now({"byte": 0.25}))
    first = machine_rates()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", lambda *_, **__: pytest.fail("read again"))
        assert first == machine_rates()
    write_rates(MeasuredRates.now({"byte": 0.5}))
    assert 0.5 == machine_rates().byte


def test_folder_that_cannot_be_written_is_an_environment_problem(cache):
    (cache / "scanprune").write_text("a file", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match=r"Cannot keep rates in '.*local\.json': .*by XDG_CACHE_HOME"):
        write_rates(MeasuredRates.now({"byte": 1.0}))
    assert CostRates() == machine_rates()


def test_interrupted_write_leaves_the_former_file(monkeypatch):
    file = write_rates(MeasuredRates.now({"byte": 0.25}))

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        write_rates(MeasuredRates.now({"byte": 0.5}))
    assert [file] == list(file.parent.iterdir())
    assert 0.25 == MeasuredRates.parse(file.read_text(encoding="utf-8")).rates["byte"]


def test_stores_have_rates_of_their_own():
    write_rates(MeasuredRates.now({"byte": 0.25}))
    for date, store, rate in (("2024-01-02", "s3a-near", 5.0), ("2024-01-01", "s3a-far", 50.0)):
        write_rates(MeasuredRates({"remote_byte": rate, "remote_request": rate * 1e6}, date), store)
    local = replace(CostRates(), byte=0.25)
    near, far = (replace(local, remote_byte=rate, remote_request=rate * 1e6) for rate in (5.0, 50.0))
    assert (near, far) == (machine_rates(["s3a-near"]), machine_rates(["s3a-far"]))
    # The slowest of several, and the one measured last where no store is named.
    assert (far, near) == (machine_rates(["s3a-far", "s3a-near"]), machine_rates())
    assert local == machine_rates(["s3a-unknown"]) == machine_rates(["local"])


def test_all_fields_of_rates_are_numbers():
    assert {"float"} == {each.type for each in fields(CostRates)}
