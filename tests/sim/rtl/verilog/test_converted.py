"""What becomes of a netlist on its way to Verilog, on components of a few gates."""

import re

import pytest
from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sim.rtl import YOSYS, run_yosys, to_rtlil
from sim.rtl.verilog import converted
from sim.rtl.verilog.equal_modules import merged
from sim.rtl.verilog.names import RESERVED, plain_names
from sim.rtl.verilog.netlist_text import ModuleText
from sim.rtl.yosys import found_yosys

pytestmark = pytest.mark.skipif(found_yosys() is None, reason=f"pip install {YOSYS[0][0]}")
PAIR = data.StructLayout({"low": 4, "none": 0, "high": data.StructLayout({"a": unsigned(1), "b": unsigned(3)})})


class Counted(wiring.Component):
    """Adds ``step`` each cycle in which ``semaphore`` is high."""

    def __init__(self, step: int) -> None:
        self._step = step
        super().__init__({"semaphore": In(1), "nothing": In(0), "pair": Out(PAIR)})

    def elaborate(self, platform):
        m = Module()
        before, unnamed = Signal(8), Signal(8)  # Amaranth sees the name of neither
        m.d.sync += before.eq(self.pair.as_value() ^ unnamed)
        m.d.sync += unnamed.eq(before + self.nothing)
        with m.If(self.semaphore & (unnamed != 0)):
            m.d.sync += self.pair.as_value().eq(before + self._step)
        return m


class Holder(wiring.Component):
    """Holds a counter, and nothing that differs from other holders."""

    def __init__(self, step: int) -> None:
        self._counter = Counted(step)
        super().__init__({"semaphore": In(1), "pair": Out(PAIR)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.counter = self._counter
        m.d.comb += [self._counter.semaphore.eq(self.semaphore), self.pair.eq(self._counter.pair)]
        return m


class Three(wiring.Component):
    """Three counters, two of which are equal, a memory of one row, and one of four."""

    def __init__(self) -> None:
        super().__init__({"on": In(3), "at": In(2), "y": Out(8)})

    def elaborate(self, platform):
        m = Module()
        counters = [Holder(1), Holder(1), Holder(2)]
        m.submodules.row = row = Memory(shape=8, depth=1, init=[5])
        m.submodules.rows = rows = Memory(shape=8, depth=4, init=[7, 0, 0, 9])
        reads = row.read_port(), rows.read_port()
        m.d.comb += reads[1].addr.eq(self.at)
        m.submodules.lane0, m.submodules.lane1, m.submodules.y = counters
        for k, counter in enumerate(counters):
            m.d.comb += counter.semaphore.eq(self.on[k])
        first, second, third = (counter.pair.as_value() for counter in counters)
        name = Signal(8, name="rows")  # that of a memory
        m.d.comb += name.eq(reads[1].data ^ 1)
        m.d.sync += self.y.eq((first ^ second ^ third) + reads[0].data + name)
        return m


def rtlil_of_three(**options: bool) -> str:
    return to_rtlil(Three(), name="three", described=True, **options)


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    return converted(rtlil_of_three())


def test_equal_modules_are_one(modules):
    assert sorted(modules) == ["three", "three_lane", "three_lane_counter", "three_y", "three_y_counter"]
    assert re.findall(r"^  (three\w*) (\w+) \($", modules["three"], re.MULTILINE)[:2] == [
        ("three_lane", "lane0"),
        ("three_lane", "lane1"),
    ]


def test_lines_of_the_source_tell_no_modules_apart():
    lines = [["  wire width 1 \\a", f'  attribute \\src "hw/soc.py:{line}"'] for line in (1, 2)]
    cells = [line for k in (0, 1) for line in (f"  cell \\top.pe{k} \\pe{k}", "  end")]
    modules = [ModuleText("top", cells), ModuleText("top.pe0", lines[0]), ModuleText("top.pe1", lines[1])]
    top, pe = merged(modules)
    assert pe == ModuleText("top_pe", lines[0])
    assert top.lines == ["  cell \\top_pe \\pe0", "  end", "  cell \\top_pe \\pe1", "  end"]


def test_modules_of_the_same_place_have_names_of_their_own():
    modules = [ModuleText("top", []), *(ModuleText(f"top.U${k}", [f"  wire width {k} \\a"]) for k in (1, 2))]
    assert [module.path for module in merged(modules)] == ["top", "top_U", "top_U_"]


def test_source_lines_are_told_on_request(modules):
    assert "src" not in "".join(modules.values())
    located = converted(rtlil_of_three(sources=True))
    here = r"tests/sim/rtl/verilog/test_converted\.py:\d+"
    assert re.search(rf"  assign _00_ = pair \^ pair_\d+;  // {here}\n", located["three"])
    assert re.search(rf'  \(\* src = "{here}" \*\)\n  three_lane lane0 \(', located["three"])
    without = {
        name: re.sub(r" *\(\* src = .* \*\)\n|  // \S+:\d+$", "", text, flags=re.M) for name, text in located.items()
    }
    assert without == modules


def test_names_are_plain_and_nothing_has_no_bits(modules):
    text = "\n".join(modules.values())
    assert "$" not in text and "\\" not in text and "nothing" not in text and "none" not in text
    assert not re.search(r"'[bh]x|\[-1:0\]|\{0\{|\b0'|\{ *\}", text)
    assert "input wire semaphore_\n" in text and ".semaphore_(on[0])" in text


def test_fields_are_comments_of_the_signal(modules):
    line = "  // fields: low[3:0], high.a[4], high.b[7:5]\n  output reg [7:0] pair = 8'h00,\n"
    assert line in modules["three_lane_counter"]


def test_a_memory_is_cleared_ahead_of_its_other_rows(modules):
    block = re.search(r"  initial begin : clear_(rows_\d+)\n(.*?)  end\n", modules["three"], re.DOTALL)
    assert block
    rows = (f"    {block[1]}[{k}] = 8'h{value:02x};\n" for k, value in enumerate((7, 0, 0, 9)))
    assert block[2].endswith(f"{block[1]}[i] = 0;\n" + "".join(rows))
    assert len(re.findall(r"  initial _\d+_ = 8'h00;\n", modules["three"])) == 2  # what has been read


def test_what_is_written_is_what_was_read(modules, tmp_path):
    """Both are proved equal for eight cycles from power-on."""
    (tmp_path / "gold.il").write_text(rtlil_of_three())
    (tmp_path / "gate.v").write_text("\n".join(modules.values()))
    made = "hierarchy -top three; proc; memory; flatten; opt_clean; setundef -init -zero; rename three"
    commands = [
        *f"read_rtlil gold.il; {made} gold; design -stash gold".split("; "),
        *f"read_verilog gate.v; {made} gate; design -stash gate".split("; "),
        "design -copy-from gold -as gold gold", "design -copy-from gate -as gate gate",
        "miter -equiv -flatten -make_outputs gold gate miter", "hierarchy -top miter",
        "sat -verify -seq 8 -set-def-inputs -prove trigger 0 miter",
    ]  # fmt: skip
    run_yosys(commands, tmp_path, tmp_path / "log")


def test_names_stay_apart():
    names = ["a$1", "a_1", "wire", "wire_", "$signal", "kept", "port$900$7", "port$12$0"]
    plain = {"a$1": "a_1_", "wire": "wire__", "$signal": "signal", "port$900$7": "port_0", "port$12$0": "port_1"}
    assert plain_names(names) == plain
    assert {"logic", "semaphore", "reg"} <= RESERVED
