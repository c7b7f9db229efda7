"""The cache of compiled netlists."""

import multiprocessing

import pytest

from hw.params import preset
from sim.rtl import SimTop, build
from sim.rtl.rtlil import to_rtlil
from tests.sim.rtl.stub_soc import StubSoc

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024)


def make(params=PARAMS):
    top = SimTop(params, StubSoc(params))
    return to_rtlil(top, name="sim_top", clock=top.domain.clk)


def netlist(params=PARAMS):
    return lambda: make(params)


@pytest.fixture
def fake_tools(tmp_path, monkeypatch):
    """A cache of its own, and a compiler that only leaves a mark for each link."""
    monkeypatch.setattr(build, "cache_dir", lambda: tmp_path / "cache")  # Yosys keeps its own below XDG_CACHE_HOME
    script = tmp_path / "compiler"
    mark = f'[ "$1" = -shared ] && echo run >> {tmp_path}/runs'
    script.write_text(f'#!/bin/sh\n{mark}\nwhile [ "$1" != -o ]; do shift; done\necho > "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv(build.COMPILER_VARIABLE, str(script))
    return lambda: len((tmp_path / "runs").read_text().splitlines())


def test_a_design_is_built_once(fake_tools):
    first = build.shared_object(netlist())
    assert build.shared_object(netlist()) == first and first.exists()
    assert fake_tools() == 1
    assert build.shared_object(netlist(), vcd=True) != first
    assert build.shared_object(netlist(PARAMS.replace(dram_latency=41))) != first
    assert fake_tools() == 3
    assert not list(build.cache_dir().glob("*/netlist.*"))


def test_a_known_source_is_not_elaborated(fake_tools):
    first = build.shared_object(netlist(), source="one")
    assert build.shared_object(lambda: pytest.fail("elaborated again"), source="one") == first
    assert build.shared_object(netlist(), source="two") == first
    first.unlink()
    assert build.shared_object(netlist(), source="one").exists()
    assert fake_tools() == 2


def test_combinational_feedback_is_refused(fake_tools, monkeypatch):
    def report(commands, work, log):
        log.write_text("Module `sim_top' contains feedback arcs through wires:\n  soc.a\n  soc.b\nWarning: ...\n")

    monkeypatch.setattr(build, "run_yosys", report)
    with pytest.raises(build.BuildError, match=r"combinational feedback.*: soc\.a, soc\.b"):
        build.shared_object(netlist())


def test_every_build_names_its_own_folder(fake_tools, tmp_path, monkeypatch):
    commands = []
    run = build._run
    monkeypatch.setattr(
        build, "_run", lambda what, command, *rest: (commands.append(command), run(what, command, *rest))
    )
    build.shared_object(netlist())
    build.shared_object(netlist(PARAMS.replace(dram_latency=41)))
    loops = [command for command in commands if str(build.SOURCE) in command]
    assert len(loops) == 2 and loops[0] != loops[1]  # zig caches objects by command line


def test_concurrent_processes_build_once(fake_tools):
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert len(set(pool.map(build.shared_object, [make] * 3))) == 1
    assert fake_tools() == 1


def test_a_compiler_that_fails_leaves_its_log(fake_tools, tmp_path):
    (tmp_path / "compiler").write_text("#!/bin/sh\necho 'netlist.cc:1: error: no such luck'\nexit 3\n")
    with pytest.raises(build.BuildError, match=r"exit code 3: .*no such luck \(log: .*build.log\)"):
        build.shared_object(netlist())
    with pytest.raises(build.BuildError, match="exit code 3"):
        build.shared_object(netlist())


def test_a_compiler_that_is_missing_is_named(fake_tools, monkeypatch):
    monkeypatch.setenv(build.COMPILER_VARIABLE, "no-such-compiler -x")
    with pytest.raises(build.BuildError, match="no-such-compiler"):
        build.shared_object(netlist())


def test_the_cache_follows_the_xdg_convention(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_dir() == tmp_path / "caesura"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert build.cache_dir() == tmp_path / ".cache" / "caesura"
