"""The last stage: packs what was routed into a bitstream."""

from pathlib import Path

from caesura.fpga.tools import ecppack


def pack(config: bytes, work: Path) -> bytes:
    """Return the bitstream of nextpnr's configuration. Raises :class:`sim.toolchain.BuildError`."""
    (work / "design.config").write_bytes(config)
    ecppack(["--compress", "--input", "design.config", "--bit", "design.bit"], work)
    return (work / "design.bit").read_bytes()
