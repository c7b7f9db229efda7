"""Simulates a netlist of cells, cycle by cycle."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.c_library import c_library, structure
from sim.gates.netlist import KINDS, GateNetlist

_COUNTS = "luts products reads flops writes deeps levels"
_TABLES = (
    "value fan_start fan level bucket_start bucket filled queued edge edge_next waiting lut_in lut_out lut_table "
    "product_in product_out read_in read_out shallow flop_in flop_out flop_kind write_in deep_in deep_out deep_width "
    "deep_through deep changed"
)
_Gates = structure("_Gates", _COUNTS, _TABLES)


class GateSimulator:
    """Is ``netlist`` from power-on: flip-flops and memories hold what their cells say. Inputs are low until they are
    set. What two ports of a block RAM do to one word in one cycle is not defined: the reader gets wrong bits."""

    def __init__(self, netlist: GateNetlist) -> None:
        self._ports = netlist.ports
        self.code: Any = c_library(Path(__file__).with_name("gates.c"))
        self._tables = _tables(netlist)
        counts = {f"{kind}s": len(netlist.inputs[kind]) for kind in KINDS}
        levels = int(netlist.levels.max(initial=-1)) + 1
        pointers = {name: table.ctypes.data for name, table in self._tables.items()}
        self.handle = ctypes.byref(_Gates(**counts, levels=levels, **pointers))
        self.code.gates_settle(self.handle)

    def nets(self, port: str) -> list[int]:
        """Return the nets of a port, lowest bit first."""
        return self._ports[port]

    def set(self, port: str, value: int) -> None:
        """Set an input."""
        for bit, net in enumerate(self._ports[port]):
            self.code.gates_put(self.handle, net, value >> bit & 1)

    def get(self, port: str) -> int:
        """Return what an output is, now that the inputs are what they are."""
        self.code.gates_settle(self.handle)
        values = self._tables["value"]
        return sum(int(values[net]) << bit for bit, net in enumerate(self._ports[port]))

    def clock(self) -> None:
        """Let a rising edge of the clock pass."""
        self.code.gates_settle(self.handle)
        self.code.gates_clock(self.handle)


def _tables(netlist: GateNetlist) -> dict[str, npt.NDArray]:
    ins, outs, told = netlist.inputs, netlist.outputs, netlist.settings
    nodes = sum(map(len, ins.values()))
    levels = netlist.levels
    value = np.zeros(netlist.nets, np.uint8)
    value[1] = 1
    kinds = np.array(told["flop"], np.uint8)
    value[outs["flop"].ravel()] = kinds >> 2 & 1
    order = np.argsort(levels, kind="stable").astype(np.int32)
    starts = np.searchsorted(levels[order], np.arange(levels.max(initial=-1) + 2)).astype(np.int32)
    queued = np.ones(nodes, np.uint8)  # at power-on everything is looked at
    tables: dict[str, npt.NDArray] = dict(zip(("fan_start", "fan"), _fans(netlist), strict=True))
    tables |= {
        "value": value, "level": levels, "bucket_start": starts, "bucket": order.copy(), "queued": queued,
        "filled": np.diff(starts), "edge": _ascending(len(levels), nodes), "edge_next": np.zeros(nodes, np.int32),
        "waiting": np.array([nodes - len(levels)], np.int64), "lut_table": np.array(told["lut"], np.uint32),
        "flop_kind": kinds, "deep_width": np.array(told["deep"], np.uint8), "changed": np.zeros(netlist.nets, np.int32),
        "deep_through": np.array(told["through"], np.uint8), "shallow": _joined(netlist.shallow),
        "deep": _joined(told["filled"]),
    }  # fmt: skip
    tables |= {f"{kind}_in": ins[kind] for kind in KINDS}
    tables |= {f"{kind}_out": outs[kind] for kind in KINDS if kind != "write"}
    return {name: np.ascontiguousarray(tables[name]) for name in _TABLES.split()}


def _ascending(first: int, end: int) -> npt.NDArray[np.int32]:
    """Return the nodes that wait for the clock edge, with room for as many as there are nodes."""
    return np.concatenate([np.arange(first, end), np.zeros(first)]).astype(np.int32)


def _joined(parts: list[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    return np.concatenate([*parts, np.zeros(0, np.uint8)])


def _fans(netlist: GateNetlist) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the nodes that read each net, one net behind the other, and where each begins."""
    nets, nodes, first = list[npt.NDArray](), list[npt.NDArray](), 0
    for kind in KINDS:
        inputs = netlist.inputs[kind]
        nets.append(inputs.ravel())
        nodes.append(np.repeat(np.arange(first, first + len(inputs)), inputs.shape[1]))
        first += len(inputs)
    read, node = np.concatenate(nets), np.concatenate(nodes)
    order = np.argsort(read, kind="stable")
    starts = np.searchsorted(read[order], np.arange(netlist.nets + 1))
    return starts.astype(np.int32), node[order].astype(np.int32)
