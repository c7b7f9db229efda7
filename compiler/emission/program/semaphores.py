"""The semaphores of an engine by name, and the units at both ends of each.

Every semaphore has one producing and one consuming unit, so that the n-th wait is ordered after the n-th signal.
A ring of buffers takes a pair: ``*_FULL`` from the unit that fills a buffer to the one that reads it, ``*_FREE`` back.
``OWN_READY`` is VEC's own: an instruction that reads from LV1 what the one before wrote there waits for it.

Numbers are chosen for the counters of waiting cycles, which tell semaphores apart by their number modulo
``job.SEMAPHORE_CLASSES``: those that MAC and VEC wait for have the classes of ``WAITS``, and ``*_FULL`` is even.
"""

import enum

from compiler.ir import CompileError
from hw.contract.isa import Unit
from hw.contract.params import SocParams
from hw.contract.timing import UNIT_IN_FLIGHT

LOADS_AHEAD = 32  #: counts of a ring of loads that wait for their first reader
MOST_COUNTS = 200  #: of a semaphore of a region along program order; a unit that lags behind adds what its queue holds


class Sem(enum.IntEnum):
    """Semaphore numbers."""

    STAGE_FULL = 0
    STAGE_FREE = 1
    WEIGHT2_FULL = 2
    WEIGHT2_FREE = 3
    ACT1_FULL = 4
    ACT1_FREE = 5
    WEIGHT1_FULL = 6
    WEIGHT1_FREE = 7
    OWN_READY = 9
    PARAMS_FULL = 10
    PARAMS_FREE = 11
    ACT0_FULL = 12
    ACT0_FREE = 13
    WEIGHT0_FULL = 14
    WEIGHT0_FREE = 15
    ACC_FULL = 16
    ACC_FREE = 17
    OUT_FULL = 18
    OUT_FREE = 19
    SPILL_FULL = 20
    SPILL_FREE = 21
    A_FULL = 22
    A_FREE = 23
    MOVE_FULL = 24
    MOVE_FREE = 25
    B_FULL = 26
    B_FREE = 27
    STAGE_B_FULL = 28
    STAGE_B_FREE = 29


#: (FULL, FREE) -> (filling unit, reading unit)
PAIRS = {
    (Sem.STAGE_FULL, Sem.STAGE_FREE): (Unit.LD2, Unit.LD1),
    (Sem.STAGE_B_FULL, Sem.STAGE_B_FREE): (Unit.LD2, Unit.LD1),
    (Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE): (Unit.LD2, Unit.LD1),
    (Sem.ACT1_FULL, Sem.ACT1_FREE): (Unit.LD1, Unit.LD0),
    (Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE): (Unit.LD1, Unit.LD0),
    (Sem.PARAMS_FULL, Sem.PARAMS_FREE): (Unit.LD1, Unit.VEC),
    (Sem.ACT0_FULL, Sem.ACT0_FREE): (Unit.LD0, Unit.MAC),
    (Sem.WEIGHT0_FULL, Sem.WEIGHT0_FREE): (Unit.LD0, Unit.MAC),
    (Sem.ACC_FULL, Sem.ACC_FREE): (Unit.MAC, Unit.VEC),
    (Sem.OUT_FULL, Sem.OUT_FREE): (Unit.VEC, Unit.ST1),
    (Sem.SPILL_FULL, Sem.SPILL_FREE): (Unit.ST1, Unit.ST2),
    (Sem.A_FULL, Sem.A_FREE): (Unit.LD1, Unit.VEC),
    (Sem.B_FULL, Sem.B_FREE): (Unit.LD1, Unit.VEC),
    (Sem.MOVE_FULL, Sem.MOVE_FREE): (Unit.LD1, Unit.ST1),
}

#: The semaphores of a region, where one is enough for all that a unit (the second) waits for from another (the first).
#: Names that a single operator needs a second time for the same two units are free for other pairs there.
BETWEEN = {
    ends: sem
    for (full, free), (one, other) in {
        **{pair: ends for pair, ends in PAIRS.items() if pair[0] is not Sem.WEIGHT0_FULL},
        (Sem.STAGE_B_FULL, Sem.STAGE_B_FREE): (Unit.ST2, Unit.LD2),
        (Sem.B_FULL, Sem.B_FREE): (Unit.ST2, Unit.LD1),
        (Sem.WEIGHT2_FULL, Sem.WEIGHT2_FREE): (Unit.LD2, Unit.ST1),
        (Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE): (Unit.LD0, Unit.VEC),
        (Sem.PARAMS_FULL, Sem.PARAMS_FREE): (Unit.LD0, Unit.ST1),
    }.items()
    for ends, sem in (((one, other), full), ((other, one), free))
}

#: What a compute unit waits for, by class of the semaphore that is missing.
WAITS = {
    Unit.MAC: {0: "activations", 1: "accumulators", 2: "weights"},
    Unit.VEC: {0: "sums", 1: "own results", 2: "loads", 3: "stores"},
}


def check_semaphores(params: SocParams) -> None:
    """Raise :class:`compiler.ir.CompileError` for hardware with fewer semaphores than there are names, or whose counts
    end below those that programs may reach."""
    most = max(LOADS_AHEAD, MOST_COUNTS) + params.unit_room + UNIT_IN_FLIGHT
    for name, least, why in (
        ("semaphores", max(Sem) + 1, "programs of the compiler use as many"),
        ("semaphore_max", most, "a semaphore of such a program may count so far, with what queues and units hold"),
    ):
        if getattr(params, name) < least:
            raise CompileError(
                f"parameters {params.name!r}: {name} is {getattr(params, name)}, and must be {least} or more for "
                f"compiled models: {why}. Build the machine with {name}={least} or more (--set {name}={least})"
            )
