from __future__ import annotations

import pytest

from connectors.spark.jvm import JavaFile, JavaNames, instance, java_names
from connectors.spark.transfer import JvmList

pytestmark = pytest.mark.spark


@pytest.fixture
def commands(spark, monkeypatch):
    """The commands that are sent to the JVM from now on."""
    found, client = [], spark._jvm._gateway_client
    send = client.send_command

    def noted(command, *more, **named):
        found.append(command)
        return send(command, *more, **named)

    monkeypatch.setattr(client, "send_command", noted)
    return found


def test_java_names_are_looked_up_once(spark, commands):
    names = JavaNames(spark._jvm)
    first = names.java.util.BitSet
    assert 3 == len(commands)
    assert first is names.java.util.BitSet
    assert 3 == len(commands)


def test_sessions_share_java_names(spark):
    assert java_names(spark) is java_names(spark.newSession())


def test_class_members_are_not_cached(spark):
    names = java_names(spark)
    assert names.java.lang.Integer.valueOf(7) == 7
    assert names.java.util.ArrayList() is not names.java.util.ArrayList()


def test_methods_of_elements_are_looked_up_once(spark, commands, monkeypatch):
    monkeypatch.setitem(spark.__dict__, "_scanprune_getters", {})
    items = JvmList(spark, java_names(spark).java.util.List.of("a", "bc"))
    assert [1, 2] == list(items.numbers("java.lang.String.length"))
    assert any("MethodHandles" in each for each in commands)
    commands.clear()
    assert [1, 2] == list(items.numbers("java.lang.String.length"))
    assert commands
    assert not any("MethodHandles" in each for each in commands)


def test_instance_of_a_compiled_class_takes_one_call(spark, bridge_calls):
    java = JavaFile("tests.connectors.spark", "TwoThings")
    assert ["x 3", "null -1"] == [instance(spark, java, *each).toString() for each in (("x", 3), (None, -1))]
    assert 1 == bridge_calls(lambda: instance(spark, java, "y", 4))
