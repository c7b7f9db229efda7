"""Breakages of the driver in C: what it checks of a flat file."""

from benchmarks.trust.mutants.mutant import Mutant

_DRIVER, _FILES = "examples/c_driver/driver.c", ("c_driver",)

C_DRIVER = (
    Mutant(
        "C1", "a file may be shorter than it says", _DRIVER,
        " || h->bytes != size)", ")",
        "P1", _FILES,
    ),
    Mutant(
        "C2", "a port may lie in LV2", _DRIVER,
        "port[i].segment > 5", "port[i].segment > 7",
        "P1", _FILES,
    ),
    Mutant(
        "C3", "a port may end behind its segment", "examples/c_driver/ports.c",
        "(uint64_t)port->offset + port->bytes <= size", "port->bytes <= size",
        "P1", _FILES,
    ),
    Mutant(
        "C4", "the last relocation may end behind the code", _DRIVER,
        "(uint64_t)entry[i].byte + 8 > h->code_bytes", "(uint64_t)entry[i].byte > h->code_bytes",
        "P1", _FILES,
    ),
)  # fmt: skip
