"""Processes that share work: results in order, errors as they are, and an end to all of them."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiler.emission.objects.workers import Workers
from compiler.ir import CompileError


def test_results_come_in_the_order_of_the_items():
    with Workers(3) as workers:
        workers.start()
        assert workers.map(math.factorial, list(range(60))) == [math.factorial(n) for n in range(60)]
        assert workers.map(len, ["a", "bc"]) == [1, 2]
        assert workers.map(len, []) == []


@pytest.mark.parametrize("count", [1, 2])
def test_an_exception_stands_in_the_place_of_a_result(count):
    with Workers(count) as workers:
        workers.start()
        results = workers.map(math.factorial, [3, -1, 4, -1, 5, -1])
    assert [results[i] for i in (0, 2, 4)] == [6, 24, 120]
    assert [(type(results[i]), str(results[i])) for i in (1, 3, 5)] == [(ValueError, str(results[1]))] * 3


def test_a_process_that_dies_is_an_error_with_a_way_out():
    with Workers(2) as workers:
        workers.start()
        other = workers._others[0]
        other.send_signal(signal.SIGKILL)
        with pytest.raises(CompileError, match=r"worker process ended with status -9 .*--jobs 1"):
            workers.map(time.sleep, [0.05] * 20)


def test_no_process_is_left():
    with Workers(3) as workers:
        workers.start()
        others = list(workers._others)
        assert len(others) == 2 and all(other.poll() is None for other in others)
    assert all(other.poll() is not None for other in others)


def _gone(process: int) -> bool:
    """Whether a process has ended, within ten seconds; who was its parent may not have asked how."""
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(process, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False


def test_an_interrupt_ends_all():
    program = (
        "import signal, time\nfrom compiler.emission.objects.workers import Workers\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background\n"
        "with Workers(2) as workers:\n    workers.start()\n"
        "    print(workers._others[0].pid, flush=True)\n    workers.map(time.sleep, [60] * 4)\n"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert asked.stdout is not None
    worker = int(asked.stdout.readline())
    time.sleep(0.5)
    os.killpg(asked.pid, signal.SIGINT)  # as a terminal does
    _, told = asked.communicate(timeout=20)
    assert "KeyboardInterrupt" in told
    assert _gone(worker)


def test_workers_need_no_main_module_of_their_own():
    """A script that compiles without a guard around its main part is not run again by workers."""
    program = (
        "from compiler.emission.objects.workers import Workers\nprint('once')\n"
        "with Workers(2) as workers:\n    workers.start()\n    print(workers.map(len, ['ab'] * 3))\n"
    )
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "once\n[2, 2, 2]\n", ran.stderr
