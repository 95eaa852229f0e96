"""The system's account of a process and all below it: bytes read, CPU seconds and peaks of memory."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

from sample_data import process_tree
from sample_data.process_tree import Usage

needs_account = pytest.mark.skipif(not process_tree.is_accounted(), reason="needs Linux's /proc/<process>/io")
MIB = 1 << 20


@contextmanager
def process(code):
    """A process that runs `code` once it is told to, and says when it is done."""
    told = f"import sys\nsys.stdin.readline()\n{code}\nprint('done', flush=True)\nsys.stdin.readline()"
    command = [sys.executable, "-c", told]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as found:
        try:
            yield found
        finally:
            found.kill()


def used_by(code):
    with process(code) as found:
        before = process_tree.usage(found.pid)
        found.stdin.write("go\n")
        found.stdin.flush()
        assert "done\n" == found.stdout.readline()
        return process_tree.usage(found.pid).since(before)


@needs_account
@pytest.mark.parametrize("where", ["itself", "a child that has ended"])
def test_bytes_of_a_known_file_are_counted_once_each_time_they_are_read(tmp_path, where):
    file = tmp_path / "known"
    file.write_bytes(bytes(5 * MIB))
    code = f"import pathlib\nfor _ in range(2): pathlib.Path({str(file)!r}).read_bytes()"
    if where != "itself":
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {code!r}], check=True)"
    read = used_by(code).bytes_read
    # Python itself reads its modules.
    assert 10 * MIB <= read < 12 * MIB


@needs_account
@pytest.mark.parametrize("where", ["itself", "a child that has ended"])
def test_cpu_seconds_are_those_of_the_whole_tree(where):
    code = "import time\nwhile time.process_time() < 0.4: pass"
    if where != "itself":
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {code!r}], check=True)"
    assert 0.3 < used_by(code).cpu_seconds < 2


# A parent that ignores ends of children, as Spark's daemon does, and one that waits for its child.
PARENT = """
import signal, subprocess, sys
if {ignores}:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
read = "import pathlib, sys; pathlib.Path({file!r}).read_bytes(); print('read', flush=True); sys.stdin.readline()"
child = subprocess.Popen([sys.executable, "-S", "-c", read], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
child.stdin.close()
child.wait()
"""


@needs_account
@pytest.mark.parametrize("ignores", [True, False])
def test_what_a_child_had_read_before_it_ended_is_neither_taken_back_nor_counted_twice(tmp_path, ignores):
    file = tmp_path / "known"
    file.write_bytes(bytes(5 * MIB))
    with process(PARENT.format(ignores=ignores, file=str(file))) as found:
        found.stdin.write("go\n")
        found.stdin.flush()
        assert "ready\n" == found.stdout.readline()
        before = process_tree.usage(found.pid)
        found.stdin.write("go\n")
        found.stdin.flush()
        assert "done\n" == found.stdout.readline()
        used = process_tree.usage(found.pid).since(before)
    assert 5 * MIB < before.bytes_read
    assert 0 <= used.bytes_read < MIB
    # Sums and differences of floats.
    assert used.cpu_seconds > -1e-9


@needs_account
def test_a_peak_is_seen_after_its_memory_was_given_back_and_begins_anew():
    with process(f"len(bytearray(b'1') * {64 * MIB})") as found:
        found.stdin.write("go\n")
        found.stdin.flush()
        found.stdout.readline()
        with_peak = process_tree.usage(found.pid).peak_bytes
        if not process_tree.reset_peaks(found.pid):
            pytest.skip("the system lets no peak begin anew")
        assert with_peak - process_tree.usage(found.pid).peak_bytes > 60 * MIB


@needs_account
def test_a_process_that_is_not_there_has_used_nothing():
    with process("") as found:
        pass
    found.wait()
    assert Usage(0, 0.0, 0) == process_tree.usage(found.pid)
    # It may end between two looks.
    assert 0 == process_tree.bytes_read(found.pid)
