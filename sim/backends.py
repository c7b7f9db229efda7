"""Names the backends. Importing this module loads no RTL."""

RTL_BACKENDS = ("native", "cxxrtl", "pysim")  #: what ``sim.rtl.open_bus`` can open
MODEL = "model"  #: the fast model: the same images, cycles within a few percent
BACKENDS = (*RTL_BACKENDS, MODEL)  #: what ``sim.simulators.open_simulator`` can open
DEFAULT_BACKEND = RTL_BACKENDS[0]
#: One line for ``--help``.
BACKENDS_HELP = (
    "native (compiled RTL), cxxrtl (compiled by way of Yosys; needs the dev extra), pysim (reference, slow) or "
    "model (no RTL: needs no build, cycles within a few percent)"
)
