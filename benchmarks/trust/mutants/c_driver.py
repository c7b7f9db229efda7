"""Breakages of the driver in C: what it checks of a flat file."""

from benchmarks.trust.mutants.mutant import Mutant

_CHECK, _PORTS, _FILES = "examples/c_driver/check.c", "examples/c_driver/ports.c", ("c_driver",)

C_DRIVER = (
    Mutant(
        "C1", "a file may be shorter than it says", _CHECK,
        "if (h->bytes != size)", "if (!h->bytes)",
        "P1", _FILES,
    ),
    Mutant(
        "C2", "a port may lie in LV2", _CHECK,
        "port->segment > 5", "port->segment > 7",
        "P1", _FILES,
    ),
    Mutant(
        "C3", "a port may end behind its segment", _PORTS,
        "(uint64_t)port->offset + port->bytes > size", "port->bytes > size",
        "P1", _FILES,
    ),
    Mutant(
        "C4", "the last relocation may end behind the code", _CHECK,
        "(uint64_t)entry->byte + 8 > h->code_bytes", "(uint64_t)entry->byte > h->code_bytes",
        "P1", _FILES,
    ),
    Mutant(
        "C5", "a job may reach one byte behind its segments", _CHECK,
        "if (limits[i] > sizes[i])", "if (limits[i] > (uint64_t)sizes[i] + 1)",
        "P1", _FILES,
    ),
    Mutant(
        "C6", "arrays of a user may be of a narrower type than tensors", _PORTS,
        "port->given == port->stored ? NULL", "port->given <= port->stored ? NULL",
        "P1", _FILES,
    ),
    Mutant(
        "C7", "a zero point may be any number", _PORTS,
        "if (zero_point < low || zero_point > low + 255)", "if (zero_point == 1 - low)",
        "P2", _FILES,
    ),
    Mutant(
        "C8", "a load that fails keeps its memory", "examples/c_driver/driver.c",
        "            device->memory = before; /* a load that fails takes nothing */\n", "",
        "P4", _FILES,
    ),
)  # fmt: skip
