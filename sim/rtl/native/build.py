"""Simulates the netlist compiled by our own generator, which evaluates only what changed: it writes C, which is
compiled."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.rtl import native
from sim.rtl.compiled import CompiledBus
from sim.rtl.top import SimTop
from sim.toolchain.compiled_libraries import Files, Recipe, library
from sim.toolchain.compilers import CC, BuildError, Source, compile_all, link
from sim.toolchain.stages import Stages

#: Linked against nothing: what C needs is in the process that loads the library. With any standard library zig first
#: builds that library, or at least its run time, which takes longer than everything else.
LINK_FLAGS = ("-nostdlib",)
#: Seconds per byte of C on one core of 2020, for a machine that has built nothing yet.
COMPILER_SPEED = 5e-6


def native_bus(
    params: SocParams, make: Callable[[], SimTop], *, costs: HostCosts | None = None, progress: Progress | None = None,
    source: str | None = None,
) -> CompiledBus:  # fmt: skip
    """Return a bus over the native simulation of the design ``make()``, which is compiled at the first use of its
    netlist, and cached. ``source`` identifies what the design is made from: where its library is cached, it is not even
    made. Raises :class:`sim.toolchain.compilers.BuildError`."""
    return CompiledBus(
        params, library(recipe(make, params), source=source), backend="native", costs=costs, progress=progress
    )


def recipe(make: Callable[[], SimTop], params: SocParams, *, profile: bool = False) -> Recipe:
    """Return how the library for the design ``make()`` is made. With ``profile`` it counts and times its
    evaluations."""
    flags = (*native.FLAGS, *(("-DPROFILE",) if profile else ()))

    def prepare(stages: Stages) -> Files:
        with stages.stage("elaboration, and C code", size=params.macs, seconds=0.3 * params.macs):
            try:
                return native.generate(make())
            except native.NetlistError as error:
                raise BuildError(f"the native simulator cannot simulate this design: {error}") from None

    tools = (CC.version, *flags, *LINK_FLAGS, *(path.read_text() for path in native.GENERATOR_SOURCES))
    return Recipe("native", tools, prepare, partial(_build, flags))


def _build(flags: tuple[str, ...], files: Files, work: Path, log: Path, stages: Stages) -> Path:
    for name, text in files.items():
        (work / name).write_text(text)
    sources = [Source(work / name) for name in files if name.endswith(".c")]
    size = sum(map(len, files.values()))
    with stages.stage("compilation of C", size=size, seconds=COMPILER_SPEED * size):
        objects = compile_all(CC, sources, [*flags, f"-I{work}"], work, log)
        return link(CC, objects, LINK_FLAGS, work, log)
