"""Writes the accelerator to Verilog files: one, or one a module."""

import json
from collections.abc import Mapping
from pathlib import Path

from hw import Soc
from hw.contract.params import SocParams
from sim.rtl import rtlil, yosys
from sim.rtl.opening import design_digest
from sim.rtl.verilog.conversion import converted
from sim.rtl.verilog.header import design_header, uses
from sim.toolchain.kept_stages import KeptStages, key_of
from sim.toolchain.stages import Stages

TOP = "caesura_soc"
_FOLDER = "verilog"  #: of the cache
_CODE = (*sorted(Path(__file__).parent.glob("*.py")), Path(rtlil.__file__), Path(yosys.__file__))
#: Seconds on one core of 2020, for a machine that has written nothing yet: for each product in a cycle, and for each
#: byte of RTLIL.
_ELABORATION_RATE, _YOSYS_RATE = 0.3, 1e-6


def soc_modules(params: SocParams, *, sources: bool = False, stages: Stages | None = None) -> dict[str, str]:
    """Return the modules of the SoC without DRAM by name, the top first; with ``sources`` each part says by which line
    of the source it was made. They are kept: a design is converted once. Raises :class:`sim.toolchain.BuildError`."""
    yosys.require_yosys("Verilog")
    code = "".join(path.read_text() for path in _CODE)
    key = key_of("modules", design_digest(params), yosys.yosys_version(), sources, code)
    kept = KeptStages(_FOLDER)
    raw = kept.find(key)
    if raw is None:
        raw = json.dumps(_made(params, sources, stages or Stages(quiet=True))).encode()
        kept.keep(key, raw)
    return json.loads(raw)


def _made(params: SocParams, sources: bool, stages: Stages) -> dict[str, str]:
    with stages.stage("elaboration", size=params.macs, seconds=_ELABORATION_RATE * params.macs):
        netlist = rtlil.to_rtlil(Soc(params), name=TOP, separator="_", sources=sources, described=True)
    with stages.stage("Yosys", size=len(netlist), seconds=_YOSYS_RATE * len(netlist)):
        return converted(netlist)


def write_verilog(
    params: SocParams, out_dir: Path, *, sources: bool = False, split: bool = False, stages: Stages | None = None
) -> list[Path]:
    """Write the SoC without DRAM to ``out_dir/caesura_soc.v``, with ``split`` each of its modules to a file of its
    name, and return the paths, that of the top first. Raises :class:`sim.toolchain.BuildError`.

    Module ``caesura_soc`` has the ports ``clk``, ``rst`` (synchronous, active high), ``irq``, an AXI4-Lite slave
    ``axil_*`` and an AXI4 master ``axi_*``. Connect ports by name: their order means nothing.
    """
    modules = soc_modules(params, sources=sources, stages=stages)
    times = uses(modules)
    texts = {
        name: f"// {name}: {times[name]} instance{'s' if times[name] > 1 else ''}\n{text}"
        for name, text in modules.items()
    }
    texts[TOP] = f"{design_header(params, modules)}\n{texts[TOP]}"
    if not split:
        texts = {TOP: "\n".join(texts.values())}
    return _written(texts, Path(out_dir))


def _written(texts: Mapping[str, str], folder: Path) -> list[Path]:
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.v"
        path.write_text(f"`default_nettype none\n{text}`default_nettype wire\n")
        paths.append(path)
    return paths
