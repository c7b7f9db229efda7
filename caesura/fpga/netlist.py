"""The first stage: elaborates a machine, or one block of it, to RTLIL with source lines."""

import hashlib
import re
from dataclasses import dataclass

from amaranth.lib import wiring

import hw
from caesura import api
from caesura.fpga.board_pins import BoardPins
from caesura.fpga.board_setup import BoardSetup
from caesura.fpga.harness import Harness
from hw.contract.params import SocParams
from sim.rtl import to_rtlil

TOP = "top"
_LINES = re.compile(r"^\s*attribute \\src .*\n", re.MULTILINE)
_MODULE = re.compile(rf"^module \\{TOP}\.(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Netlist:
    """Is a design as RTLIL: ``modules`` are the paths of its instances below the top."""

    name: str
    text: str
    modules: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return what tells designs apart: it stays the same where lines move and nothing else does."""
        return hashlib.sha256(_LINES.sub("", self.text).encode()).hexdigest()[:32]


def known(block: str | None) -> str | None:
    """Return ``block``. Raises :class:`caesura.api.UsageError` for a block that does not exist."""
    if block is not None and block not in hw.BLOCKS:
        raise api.UsageError(f"no block named {block!r}; known are {', '.join(hw.BLOCKS)}")
    return block


def elaborated(params: SocParams, block: str | None = None) -> Netlist:
    """Return the whole machine, or the ``block`` of it that is :func:`known`, in a harness."""
    name = known(block)
    component = hw.BLOCKS[name](params) if name else hw.Soc(params)
    return in_harness(f"{params.name} {block}" if block else params.name, component)


def in_harness(name: str, component: wiring.Component) -> Netlist:
    """Return ``component``, which has not been elaborated yet, in a harness."""
    harness = Harness(component)
    text = to_rtlil(harness, name=TOP, clock=harness.clock, sources=True)
    return Netlist(name, text, tuple(sorted(_MODULE.findall(text))))


def on_pins(params: SocParams, setup: BoardSetup) -> Netlist:
    """Return a board's top on its pins, see :class:`caesura.fpga.board_pins.BoardPins`."""
    board = BoardPins(params, setup)
    text = to_rtlil(board, name=TOP, clock=board.clock, pads=board.pads, sources=True)
    return Netlist(f"board of {params.name}", text, tuple(sorted(_MODULE.findall(text))))


def with_own_ports(name: str, component: wiring.Component) -> Netlist:
    """Return ``component``, which has not been elaborated yet, without a harness: its members, ``clk`` and ``rst`` are
    the ports, a member ``b`` of an interface ``a`` as ``a__b``. Source lines are left out, so that what is made of it
    stays where lines move."""
    text = to_rtlil(component, name=TOP)
    return Netlist(name, text, tuple(sorted(_MODULE.findall(text))))
