"""The names of the RTL backends. Importing them loads no RTL."""

BACKENDS = ("native", "cxxrtl", "pysim")  #: what ``sim.rtl.open_bus`` can open
DEFAULT_BACKEND = BACKENDS[0]
#: One line for ``--help``.
BACKENDS_HELP = (
    "native (compiled RTL), cxxrtl (compiled by way of Yosys; needs the dev extra) or pysim (reference, slow)"
)
