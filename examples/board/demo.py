"""Puts the netlist of a board behind a pseudo-terminal, until it is interrupted.

python -m examples.board.demo [--preset nano] [--dram KIB]
"""

import argparse
import contextlib
import signal
import threading

from examples.board.netlist import line_to_board, mapped_board
from examples.board.terminal import terminal
from hw.contract.params import KIB, PRESETS, ParamError, preset
from sim.toolchain import BuildError

_DRAM = 256  #: KiB: the digits network runs in them


def main() -> None:
    """Start it, print a command that uses it, and wait."""
    parser = argparse.ArgumentParser(prog="python -m examples.board.demo", description=__doc__)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="nano", help="the machine (default: nano)")
    parser.add_argument("--dram", type=int, default=_DRAM, metavar="KIB", help=f"its memory (default: {_DRAM})")
    asked = parser.parse_args()
    try:
        params = preset(asked.preset).replace(dram_bytes=asked.dram * KIB)
        line = line_to_board(mapped_board(params))
    except (ParamError, BuildError) as problem:
        parser.error(str(problem))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as by Ctrl-C
    with terminal(line) as name, contextlib.suppress(KeyboardInterrupt):
        machine = f"--preset {asked.preset} --set dram_bytes={asked.dram}KiB"
        print(f"caesura run examples/digits/digits.onnx {machine} --device serial:{name}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
