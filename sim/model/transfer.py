"""Commands of the units that reach DRAM, on their way through them."""

from collections.abc import Callable

from sim.timing.copies import BusCopy

Told = Callable[[int], None]
Struck = Callable[[int, "Transfer", int], None]  #: told when the fault is known, whose burst failed, and which
BODY, LOADER = 0, 1  #: who gives commands to LD2


class Transfer:
    """The command of LD2 or ST2 at ``pc``.

    ``bases``: the address that the offsets of its bursts count from, and the byte of LV2
    that a load's words count from; ``accepted`` and ``done`` are told the cycle.
    """

    __slots__ = (
        "accepted",
        "base",
        "begin",
        "bursts",
        "done",
        "into",
        "last",
        "lead",
        "left",
        "next",
        "pc",
        "side",
        "steps",
        "trail",
    )

    def __init__(
        self, work: BusCopy, bases: tuple[int, int], accepted: Told, done: Told, pc: int, side: int = BODY
    ) -> None:
        self.pc = pc
        self.bursts, self.lead, self.trail = work.bursts, work.lead, work.trail
        self.steps = work.steps
        self.base, self.into = bases
        self.accepted, self.done, self.side = accepted, done, side
        self.begin = 0
        self.next = 0  #: burst to ask for
        self.left = len(work.bursts)  #: bursts to come
        self.last = 0  #: when the last word came, or went
