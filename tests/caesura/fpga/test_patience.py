"""A router that goes round for ever is given up, and the other seeds go on."""

import subprocess
import sys
import time

import pytest

from caesura.fpga import PARTS, Flow, Netlist, patience, routing, tools
from caesura.fpga.patience import MANY, PATIENCE, SHORT, RouterRounds
from caesura.fpga.tables import clock_table
from sim.toolchain import BuildError, Stages


def line(round_, overused, slow=None):
    wires = f"wires={475_000 + round_} overused={overused} overuse={overused // 2} resources=0 overused=0 overuse=0"
    timing = "" if slow is None else f" tmgfail={slow}"
    return f"Info:     iter={round_} {wires}{timing} archfail={'NA' if overused else 0}"


def log(*left):
    """Lines of rounds; of wires alone, or of (wires, connections that are too slow)."""
    return [line(n, *(one if isinstance(one, tuple) else (one,))) for n, one in enumerate(left, 1)]


@pytest.mark.parametrize(
    ("left", "hopeless"),
    [
        ((), False),
        ((70_000, 5_000, 300, 0), False),
        ((2,) * PATIENCE, False),
        ((2,) * (PATIENCE + 1), True),
        ((*(3,) * PATIENCE, 2, *(9,) * (PATIENCE - 1)), False),
        ((*(3,) * PATIENCE, 2, *(9,) * PATIENCE), True),
        ((MANY - 1, *(MANY + 50,) * (PATIENCE - 1)), False),
        ((MANY, *(MANY + 50,) * (SHORT - 1)), False),
        ((MANY, *(MANY + 50,) * SHORT), True),
        (range(500, 0, -1), False),
        (((7, 0), *((0, 4),) * (PATIENCE + 1)), True),
        (((7, 0), *((0, 4),) * (PATIENCE + 1), (0, 0)), False),
        (((7, 0), *((6, 3),) * PATIENCE), True),
        (((7, 0), *((6, 0),) * (PATIENCE - 1)), False),
    ],
)
def test_rounds_without_a_smaller_number_end_it(left, hopeless):
    noise = ["Info: Running main router loop...", "Info:     iteration 3 of something, overused=7"]
    assert RouterRounds.of([*noise, *log(*left)]).hopeless == hopeless


def test_what_is_left_is_told():
    assert str(RouterRounds.of(log((1_200, 30), (900, 31), (800, 900)))) == (
        "900 wires in use twice and 31 connections too slow at best, after 2 of 3 rounds"
    )


def script(tmp_path, body):
    path = tmp_path / "router.py"
    path.write_text(f"import sys, time\n{body}")
    return [sys.executable, "-P", patience.__file__, sys.executable, str(path)]


def test_one_that_never_ends_is_ended(tmp_path):
    """Also one that says nothing more for an hour."""
    told = f"print({line(1, 69)!r}.replace('iter=1', f'iter={{n}}'), flush=True)"
    told = f"for n in range(1, {PATIENCE + 2}): {told}\ntime.sleep(3600)"
    done = subprocess.run(script(tmp_path, told), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == patience.EXIT_CODE
    *rounds, last = done.stdout.splitlines()
    assert last == f"error: given up: 69 wires in use twice at best, after 1 of {PATIENCE + 1} rounds"
    assert rounds == [line(1, 69).replace("iter=1", f"iter={n}") for n in range(1, PATIENCE + 2)]


def test_one_that_ends_is_passed_on(tmp_path):
    """Byte by byte, also what is no text."""
    body = "sys.stdout.buffer.write(b'routed \\xff\\n'); print('on stderr', file=sys.stderr); sys.exit(7)"
    done = subprocess.run(script(tmp_path, body), capture_output=True, check=False)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (7, [b"on stderr", b"routed \xff"])


def test_one_that_nobody_waits_for_any_more_is_ended(tmp_path):
    """Who started it was killed, and could not tell it."""
    marks = tmp_path / "marks"
    body = f"while True: print('on', file=open({str(marks)!r}, 'a'), flush=True); time.sleep(0.05)"
    starter = f"import subprocess; subprocess.run({script(tmp_path, body)!r})"
    with subprocess.Popen([sys.executable, "-c", starter]) as process:
        until(marks.exists)
        process.kill()
    last = []

    def quiet():
        last.append(marks.stat().st_size)
        time.sleep(1)
        return marks.stat().st_size == last[-1]

    until(quiet)


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def flow(tmp_path, monkeypatch):
    """A flow whose tools are not run: the ``unroutable`` seeds are not routed. ``asked``: the seeds that were."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Flow, "mapped", lambda self, netlist: b"{}")
    monkeypatch.setattr("caesura.fpga.flow.pack", lambda config, work: b"bits of " + config)
    for name in ("require", "version"):
        monkeypatch.setattr(tools, name, lambda *needs: "")
    flow = Flow(PARTS["lfe5um5g-25f"], 100.0, Stages(quiet=True))
    asked, unroutable = [], set()

    def route(mapped, modules, options, part, seed, every, work):
        asked.append(seed)
        if seed in unroutable:
            raise tools.NotRoutedError(str(RouterRounds.of(log(*(12,) * (PATIENCE + 1)))))
        result = {"seed": seed, "fmax": 100.0 - seed, "use": {}, "paths": [], "floor": {}}
        return result, f"seed {seed}".encode()

    monkeypatch.setattr(routing, "route", route)
    return lambda *seeds: flow.run(Netlist("power", "", []), seeds), asked, unroutable


def test_a_seed_that_is_not_routed_is_told_beside_the_others(flow):
    run, asked, unroutable = flow
    unroutable.update((2, 4, 5))
    result, bits = run(1, 2, 3)
    told = "12 wires in use twice at best, after 1 of 61 rounds"
    assert result["seeds"] == {"1": 99.0, "3": 97.0} and bits == b"bits of seed 1" and asked == [1, 2, 3]
    assert result["fmax"]["worst"] == 97.0 and result["unrouted"] == {"2": told}
    assert (f"seed 2: {told}", "not routed") in [tuple(row.values()) for row in clock_table(result).totals]
    assert run(1, 2, 3) == (result, bits) and asked == [1, 2, 3]  # what was not routed is kept, too

    with pytest.raises(
        BuildError, match=rf"power was not routed on LFE5UM5G-25F \(seed 4: {told}; seed 5: .*--spacing"
    ):
        run(4, 5)


@pytest.mark.parametrize(("overused", "given_up"), [((12,) * (PATIENCE + 1), True), ((12, 11), False)])
def test_the_log_says_whether_the_router_was_given_up_or_failed(tmp_path, monkeypatch, overused, given_up):
    def run_tool(what, command, work, log_file):
        log_file.write_text("\n".join(log(*overused)))
        raise BuildError("nextpnr failed with exit code 3")

    monkeypatch.setattr(tools, "run_tool", run_tool)
    monkeypatch.setattr(tools, "require", lambda *needs: None)
    with pytest.raises(BuildError) as raised:
        tools.nextpnr([], tmp_path)
    assert isinstance(raised.value, tools.NotRoutedError) == given_up
