"""Registers that are written under several conditions: what holds them is a clock enable."""

import json
from collections import Counter

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from caesura.fpga import enables, synthesise, with_own_ports
from caesura.fpga.enables import with_enables
from sim.gates import GateNetlist
from tests.support.gates import co_simulate

WIDTH = 12


class Nested(wiring.Component):
    """Registers that are written when they are loaded, and under a condition within another, in each of four ways: the
    inner one there or not, within what follows from the outer one or from its opposite."""

    load: In(1)
    outer: In(1)
    inner: In(1)
    data: In(WIDTH)
    moved: In(WIDTH)
    q: Out(WIDTH).array(4)

    def elaborate(self, platform):
        m = Module()
        for number, q in enumerate(self.q):
            with m.If(self.load):
                m.d.sync += q.eq(self.data + number)
            first = self.inner if number & 1 else ~self.inner
            if number & 2:
                with m.If(self.outer):
                    with m.If(first):
                        m.d.sync += q.eq(self.moved)
            else:
                with m.If(self.outer):
                    pass
                with m.Else(), m.If(first):
                    m.d.sync += q.eq(self.moved)
        return m


def synthesised(tmp_path):
    pytest.importorskip("pyosys")
    return synthesise(with_own_ports("nested", Nested()), tmp_path)


def held(mapped):
    """How many flip-flops have an enable, and how many have none."""
    cells = json.loads(mapped)["modules"]["top"]["cells"].values()
    return Counter(cell["parameters"]["CEMUX"].strip() for cell in cells if cell["type"] == "TRELLIS_FF")


def test_what_is_written_under_two_conditions_has_an_enable(tmp_path):
    mapped = synthesised(tmp_path)
    assert held(mapped) == {"CE": 4 * WIDTH}
    assert co_simulate(Nested, GateNetlist(mapped), 500, 1) > 500


def test_it_has_none_as_it_comes_from_yosys(tmp_path, monkeypatch):
    """Where this fails, Yosys has learned it, and ``enables`` can go."""
    monkeypatch.setattr(enables, "with_enables", lambda rtlil: rtlil)
    assert held(synthesised(tmp_path))["1"] == 4 * WIDTH


_MUX = (
    "  cell $mux {y}_made\n    parameter \\WIDTH 8\n    connect \\A {a}\n    connect \\B {b}\n"
    "    connect \\S {s}\n    connect \\Y {y}\n  end\n"
)


def module(*muxes: str) -> str:
    """A module of muxes, each as ``y = s ? b : a``."""
    made = []
    for text in muxes:
        y, _, s, _, b, _, a = text.split()
        made.append(_MUX.format(y=f"\\{y}", s=f"\\{s}", b=f"\\{b}", a=f"\\{a}"))
    return "".join(["module \\top\n", *made, "end\n"])


@pytest.mark.parametrize(
    ("muxes", "gates"),
    [
        (("in = a ? m : x", "y = c ? in : x"), ["$and"]),
        (("in = a ? x : m", "y = c ? in : x"), ["$not", "$and"]),
        (("in = a ? m : x", "y = c ? x : in"), ["$not", "$and"]),
        (("in = a ? x : m", "y = c ? x : in"), ["$not", "$not", "$and"]),
        (("in = a ? m : x", "y = c ? in : z"), []),  # otherwise it is something else
        (("in = a ? m : x", "y = c ? z : in"), []),
        (("in = a ? m : x", "mid = b ? in : x", "y = c ? mid : x"), ["$and", "$and"]),
    ],
)
def test_conditions_are_joined_where_the_rest_is_the_same(muxes, gates):
    before = module(*muxes)
    after = with_enables(before)
    made = [line.split()[1] for line in after.splitlines() if line.startswith("  cell") and "$mux" not in line]
    assert sorted(made) == sorted(gates)
    assert (after == before) == (not gates)


def test_gates_are_made_once_for_all_bits():
    """Two registers under the same conditions share them."""
    muxes = [f"in{k} = a ? m{k} : x{k}" for k in (1, 2)] + [f"y{k} = c ? in{k} : x{k}" for k in (1, 2)]
    assert with_enables(module(*muxes)).count("cell $and") == 1
