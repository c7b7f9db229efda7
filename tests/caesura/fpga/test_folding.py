"""Look-up tables that go into the carry chains that they feed: a bit of a chain passes the same carries, and begins the
same."""

import itertools
import json
import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from caesura.fpga import folding, synthesise, with_own_ports
from caesura.fpga.folding import folded
from sim.gates import GateNetlist
from tests.support.gates import co_simulate

SUM = "1001011010101010"  #: of a bit of Yosys' sums: A ^ B ^ C, where D is high, and a carry that begins is A
PRODUCT = "0111100010001000"  #: (A & B) ^ (C & D), and a carry that begins is A & B
PINS = "ABCD"


def cell(kind, **ports):
    directions = {port: "output" if port in ("Z", "S0", "S1", "COUT") else "input" for port in ports}
    return {"type": kind, "port_directions": directions, "connections": {port: [net] for port, net in ports.items()},
            "parameters": {}, "attributes": {}}  # fmt: skip


def table(init, out, inputs):
    made = cell("LUT4", **dict(zip(PINS, inputs, strict=True)), Z=out)
    made["parameters"] = {"INIT": init}
    return made


def chain(init, inputs):
    """A cell whose lower bit has the ``inputs``; its upper one adds nothing."""
    lower, upper = dict(zip(("A0", "B0", "C0", "D0"), inputs, strict=True)), dict.fromkeys(("A1", "B1", "C1"), "0")
    made = cell("CCU2C", **lower, **upper, D1="1", CIN=90, COUT=91, S0=92, S1=93)
    made["parameters"] = {"INIT0": init, "INIT1": SUM, "INJECT1_0": "NO", "INJECT1_1": "NO"}
    return made


def design(cells, ports=()):
    """A mapped netlist with some nets as outputs."""
    outputs = {f"p{net}": {"direction": "output", "bits": [net]} for net in (91, 92, *ports)}
    return json.dumps({"modules": {"top": {"ports": outputs, "cells": cells, "netnames": {}}}}).encode()


def behaviour(raw, nets):
    """For all values of ``nets``: whether the lower bit passes a carry on, and which begins if it does not."""
    cells = json.loads(raw)["modules"]["top"]["cells"]
    found = []
    for values in itertools.product((0, 1), repeat=len(nets)):
        known = {"0": 0, "1": 1, **dict(zip(nets, values, strict=True))}
        for one in cells.values():
            if one["type"] == "LUT4":
                known[one["connections"]["Z"][0]] = looked_up(one, "INIT", "", PINS, known)
        (carry,) = (one for one in cells.values() if one["type"] == "CCU2C")
        passes = looked_up(carry, "INIT0", "0", PINS, known)
        found.append((passes, None if passes else looked_up(carry, "INIT0", "0", "AB", known)))
    return found


def looked_up(one, init, half, pins, known):
    at = sum(known[one["connections"][pin + half][0]] << bit for bit, pin in enumerate(pins))
    return int(one["parameters"][init][::-1][at])


def luts(raw):
    return [one for one in json.loads(raw)["modules"]["top"]["cells"].values() if one["type"] == "LUT4"]


def both(one, pattern):
    """A table of two inputs, A and B, as one of four."""
    return table(pattern * 4, one, (one + 1, one + 2, "0", "0"))


@pytest.mark.parametrize(
    ("init", "inputs", "ahead", "left"),
    [
        (SUM, (1, 20, "0", "1"), [both(20, "0110")], 0),  # a sum with x ^ y
        (SUM, (20, 1, "1", "1"), [both(20, "1000")], 0),  # the other operand, of a difference
        (SUM, (20, "0", "0", "1"), [table("11010100" * 2, 20, (21, 22, 23, "0"))], 0),  # a counter with three inputs
        (SUM, (20, 30, "0", "1"), [both(20, "1000"), both(30, "1000")], 0),  # which is a sum of products
        (SUM, (20, 30, "0", "1"), [both(20, "0111"), both(30, "0111")], 1),  # four inputs leave no room for a carry
        (PRODUCT, (1, 2, 3, 20), [both(20, "0110")], 1),  # five inputs
        (PRODUCT, (1, "1", 20, "1"), [both(20, "0110")], 0),
    ],
)
def test_a_small_table_goes_into_a_bit(init, inputs, ahead, left):
    nets = sorted({net for net in inputs if net in (1, 2, 3)} | {net for one in ahead for net in inner(one)})
    before = design({"carry": chain(init, inputs), **{f"lut{number}": one for number, one in enumerate(ahead)}})
    after = folded(before)
    assert len(luts(after)) == left
    assert behaviour(after, nets) == behaviour(before, nets)


def inner(one):
    return {bits[0] for port, bits in one["connections"].items() if port != "Z" and isinstance(bits[0], int)}


@pytest.mark.parametrize("seed", range(300))
def test_any_bit_does_what_it_did(seed):
    """Any table of a bit, and tables ahead of it that share inputs."""
    rng = random.Random(seed)
    nets = [1, 2, 3, 4, 5]
    ahead = {
        20 + number: table(
            "".join(rng.choice("01") for _ in range(16)), 20 + number,
            [*rng.choices(nets, k=(used := rng.randint(1, 3))), *rng.choices("01", k=4 - used)],
        )
        for number in range(rng.randint(1, 3))
    }  # fmt: skip
    init = rng.choice([SUM, SUM, PRODUCT, "".join(rng.choice("01") for _ in range(16))])
    inputs = [*(rng.choice([*ahead, *ahead, *nets, "0", "1"]) for _ in range(3)), rng.choice(["1", "1", "0", 5])]
    before = design({"carry": chain(init, inputs), **{f"lut{net}": one for net, one in ahead.items()}})
    after = folded(before)
    assert behaviour(after, nets) == behaviour(before, nets), f"seed {seed}"


def test_any_table_of_two_inputs_goes_into_a_sum():
    """Also where the other operand is one of them."""
    for number, first in itertools.product(range(16), (1, 3)):
        lut = table(f"{number:04b}" * 4, 20, (first, 2, "0", "0"))
        assert not luts(folded(design({"carry": chain(SUM, (1, 20, "0", "1")), "lut": lut})))


@pytest.mark.parametrize("how", ["a port", "a flip-flop", "another chain"])
def test_a_table_that_others_look_at_stays(how):
    cells = {"carry": chain(SUM, (1, 20, "0", "1")), "lut": both(20, "0110")}
    if how == "a flip-flop":
        cells["flop"] = cell("TRELLIS_FF", DI=20, CLK=80, Q=81)
    elif how == "another chain":
        cells["other"] = chain(SUM, (2, 20, "0", "1"))
    raw = design(cells, ports=(20,) if how == "a port" else ())
    assert json.loads(folded(raw)) == json.loads(raw)


class Magnitude(wiring.Component):
    """An absolute value, and a difference of what is masked: tables ahead of sums."""

    value: In(16)
    mask: In(1)
    other: In(16)
    magnitude: Out(16)
    masked: Out(16)

    def elaborate(self, platform):
        m = Module()
        sign = self.value[-1]
        m.d.sync += [
            self.magnitude.eq((self.value ^ sign.replicate(16)) + sign),
            self.masked.eq(self.other - (self.value & self.mask.replicate(16))),
        ]
        return m


def test_masks_and_signs_take_no_tables(tmp_path, monkeypatch):
    pytest.importorskip("pyosys")
    design = with_own_ports("magnitude", Magnitude())
    mapped = synthesise(design, tmp_path)
    assert not luts(mapped)
    assert co_simulate(Magnitude, GateNetlist(mapped), 500, 1) > 500
    monkeypatch.setattr(folding, "folded", lambda raw: raw)
    assert len(luts(synthesise(design, tmp_path))) >= 30
