"""What each kind of cell does: small designs, before and after synthesis, with the same inputs."""

import json
import random

import pytest
from amaranth.hdl import Module, Mux, ResetInserter, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sim.gates import GateError, GateNetlist
from tests.support.gates import any_value, co_simulate, gates

pytest.importorskip("pyosys")


class Arithmetic(wiring.Component):
    """Look-up tables of all widths, carry chains, products in blocks, and flip-flops with each control."""

    a: In(signed(18))
    b: In(signed(18))
    c: In(12)
    reset: In(1)
    enable: In(1)
    total: Out(signed(24), init=77)
    product: Out(signed(36))
    positive: Out(24)
    choice: Out(12)
    less: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.product.eq(self.a * self.b), self.positive.eq(self.c * self.b[:12]), self.less.eq(self.a < self.b),
            self.choice.eq(Mux(self.c[:6] == 37, self.a ^ self.b, self.c.rotate_left(3) | self.b)),
        ]  # fmt: skip
        with m.If(~self.enable):
            m.d.sync += self.total.eq(self.total + self.a - self.b)
        return ResetInserter(self.reset)(m)


class Rows(wiring.Component):
    """A memory with a port to write and one to read, which holds its output where it is not enabled."""

    def __init__(self, width: int, depth: int, parts: int = 1, *, full=False, transparent=False, attrs=()):
        self._attrs = dict(attrs)
        self._width, self._depth, self._parts, self._transparent = width, depth, parts, transparent
        self._init = [random.Random(row).getrandbits(width) for row in range(depth if full else 0)]
        address = (depth - 1).bit_length()
        super().__init__(
            {
                "write": In(parts), "at": In(address), "data": In(width),
                "read": In(1), "row": In(address), "found": Out(width),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self._width, depth=self._depth, init=self._init, attrs=self._attrs)
        write = memory.write_port(granularity=self._width // self._parts if self._parts > 1 else None)
        read = memory.read_port(transparent_for=(write,) if self._transparent else ())
        m.d.comb += [
            write.en.eq(self.write), write.addr.eq(self.at), write.data.eq(self.data),
            read.en.eq(self.read), read.addr.eq(self.row), self.found.eq(read.data),
        ]  # fmt: skip
        return m


def few_rows(rng: random.Random, name: str, bits: int) -> int:
    """Addresses that meet again."""
    if name not in ("at", "row"):
        return any_value(rng, name, bits)
    return rng.choice((0, 1, 2, 3, 5, 8, 13, 21, 99, (1 << bits) - 1)) % (1 << bits)


def test_arithmetic(tmp_path):
    netlist = gates(Arithmetic(), tmp_path)
    assert all(len(netlist.inputs[kind]) for kind in ("lut", "product", "flop"))
    assert co_simulate(Arithmetic, netlist, 1500, 1) > 2000


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("read", {"width": 8, "depth": 32}),
        ("deep", {"width": 36, "depth": 512, "full": True}),
        ("deep", {"width": 16, "depth": 1024, "parts": 2}),
        ("deep", {"width": 9, "depth": 2048, "full": True}),
        ("deep", {"width": 4, "depth": 4096, "full": True}),
        ("deep", {"width": 2, "depth": 8192, "full": True}),
        ("deep", {"width": 8, "depth": 16384, "parts": 1}),
        ("deep", {"width": 64, "depth": 512, "parts": 8, "transparent": True}),
    ],
)
def test_memories(tmp_path, kind, shape):
    netlist = gates(Rows(**shape), tmp_path)
    assert len(netlist.inputs[kind])
    assert co_simulate(lambda: Rows(**shape), netlist, 1500, 2, few_rows) > 50 or shape["width"] < 9


def test_a_reader_gets_wrong_bits_of_a_word_that_is_written_in_the_same_cycle(tmp_path):
    shape = {"width": 36, "depth": 512, "attrs": {"no_rw_check": 1}}
    netlist = gates(Rows(**shape), tmp_path)
    with pytest.raises(AssertionError, match=r"cycle \d+: found is 0x"):
        co_simulate(lambda: Rows(**shape), netlist, 1500, 2, few_rows)

    def apart(rng, name, bits):
        """Rows that are written are odd, and those that are read even."""
        value = few_rows(rng, name, bits)
        return {"at": value | 1, "row": value & ~1}.get(name, value)

    co_simulate(lambda: Rows(**shape), netlist, 1500, 2, apart)


def netlist_of(**cells) -> bytes:
    ports = {name: {"direction": "input", "bits": [bit]} for name, bit in (("clk", 2), ("other", 3))}
    return json.dumps({"modules": {"top": {"ports": ports, "cells": cells}}}).encode()


def cell(kind: str, parameters: dict[str, str], **connections) -> dict:
    return {"type": kind, "parameters": parameters, "connections": {pin: [bit] for pin, bit in connections.items()}}


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"pll": cell("EHXPLLL", {})}, r"a cell EHXPLLL \(pll\) is none that can be simulated"),
        ({"one": cell("TRELLIS_FF", {}, CLK=3, DI=4, Q=5)}, "one has a clock of its own"),
        ({"one": cell("TRELLIS_FF", {"SRMODE": "ASYNC"}, CLK=2, DI=4, Q=5)}, "one has SRMODE ASYNC; what is known is"),
        (
            {name: cell("LUT4", {"INIT": "1010"}, A=a, Z=z) for name, a, z in (("a", 4, 5), ("b", 5, 4), ("c", 5, 6))},
            "3 combinational cells are in a loop, or behind one",
        ),
        ({"ram": cell("DP16KD", {"DATA_WIDTH_A": "1001", "DATA_WIDTH_B": "1"})}, "ram has ports of other widths than"),
    ],
)
def test_what_cannot_be_simulated_is_told(cells, why):
    with pytest.raises(GateError, match=why):
        GateNetlist(netlist_of(**cells))
