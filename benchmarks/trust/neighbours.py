"""A victim on the RTL in mid-flight, while the engine beside it is reset, faults, is paused or meets errors.

The victim's memory must be exact and its jobs must end in time. Among its jobs are such as must wait: for a window that
an earlier job still reads, and for an event that the other engine signals.
"""

import random
from collections import Counter
from collections.abc import Callable

from benchmarks.trust.differential import ATTACKER, VICTIM, Mismatch, Pair
from benchmarks.trust.programs import chain
from benchmarks.trust.soc import COMPLETIONS, RING_LOG2, TENANT_BYTES, Wedged, segments_of
from benchmarks.trust.words import raw_word
from hw.contract.isa import Insn, Op
from hw.contract.job import COMPLETION, Fault, JobFlag
from hw.contract.regs import EngineState, register_map

SCENES = 5  #: of one round
_SLVERR = 2
_CYCLES = 60_000  #: that the victim's jobs may take, stalls included: many times what they need
_COPIES = 10  #: of the attacker's program: thousands of cycles of bursts in flight


class NeighbourCampaign:
    """A round is a few scenes, each of an attacker and a victim. ``backend``: of ``sim.backends``."""

    def __init__(self, backend: str) -> None:
        self.reached: Counter[str] = Counter()
        self._pair = Pair(backend)
        self._bus, self._soc = self._pair.bus, self._pair.soc
        self._events = [register_map(2)[f"EVENT[{e}]"] for e in range(self._bus.params.events)]
        self._scenes: list[tuple[str, Callable[[random.Random], None]]] = [
            ("reset in mid-flight", self._reset),
            ("fault in mid-flight", self._fault),
            ("pause in mid-flight", self._pause),
            ("error of the memory", self._error),
            ("error of the completion ring", self._completion_error),
            ("window_after", self._window),
            ("events", self._event),
        ]

    def close(self) -> None:
        """Close the simulator."""
        self._pair.close()

    def round(self, seed: int) -> str:
        """Scenes in random order. Raises ``Mismatch``, ``Wedged``."""
        rng = random.Random(seed)
        self._pair.restart(rng)
        for name, scene in rng.sample(self._scenes, SCENES):
            self._pair.stall(rng)
            try:
                scene(rng)
                self._bus.set_dram_fault(0)
                self._pair.recover(None)
            except (Mismatch, Wedged) as error:
                raise type(error)(f"{name}: {error}") from None
        return f"{SCENES} scenes"

    # -- what the attacker does ------------------------------------------------------------------------------
    def _beside(self, rng: random.Random, attack: Callable[[], None], *, faulty: bool = False) -> None:
        """Let both run, ``attack`` at any time, and see how the victim's jobs end."""
        victim = self._pair.authors[VICTIM].write(rng, flawed=False)
        self._soc.queue(ATTACKER, _busy(rng, faulty=faulty))
        self._soc.queue(VICTIM, victim.body)
        for tenant in rng.sample((ATTACKER, VICTIM), 2):
            self._soc.ring(tenant)
        self._bus.advance(rng.randrange(1, 600))
        attack()
        ended = self._soc.wait(VICTIM, _CYCLES)
        if ended.status:
            raise Mismatch(f"the victim's program ends with {ended}")

    def _running(self, tenant: int) -> bool:
        return self._soc.read(tenant, "STATUS") & 15 in (EngineState.RUNNING, EngineState.DRAINING)

    def _count(self, what: str) -> None:
        """Only where both were in the middle of something."""
        if self._running(ATTACKER) and self._running(VICTIM):
            self.reached[what] += 1

    def _reset(self, rng: random.Random) -> None:
        def attack() -> None:
            for _ in range(rng.randint(1, 3)):
                self._count("reset in mid-flight")
                self._soc.reset(ATTACKER)
                self._soc.queue(ATTACKER, _busy(rng))
                self._soc.ring(ATTACKER)
                self._bus.advance(rng.randrange(1, 300))

        self._beside(rng, attack)

    def _fault(self, rng: random.Random) -> None:
        def attack() -> None:
            self._count("fault in mid-flight")
            if self._soc.wait(ATTACKER, _CYCLES).status == Fault.NONE:
                raise Mismatch("a program with a flaw ends well")

        self._beside(rng, attack, faulty=True)

    def _pause(self, rng: random.Random) -> None:
        def attack() -> None:
            self._count("pause in mid-flight")
            self._soc.write(ATTACKER, "CONTROL", 1 | 4)
            if rng.random() < 0.5:
                self._bus.advance(rng.randrange(1, 2000))
                self._soc.write(ATTACKER, "CONTROL", 1)

        self._beside(rng, attack)
        self._soc.write(ATTACKER, "CONTROL", 1)
        ended = self._soc.wait(ATTACKER, _CYCLES)
        if ended.status:
            raise Mismatch(f"a program that was paused ends with {ended}")

    def _error(self, rng: random.Random) -> None:
        def attack() -> None:
            self._count("error of the memory")
            base, size = segments_of(ATTACKER)[rng.choice((0, 1, 2, 4))]
            self._bus.set_dram_fault(_SLVERR, base, size, cycles=rng.choice((20, 400, 5000)))

        self._beside(rng, attack)

    def _completion_error(self, rng: random.Random) -> None:
        """A job whose completion cannot be written must not count as complete."""

        def attack() -> None:
            base = ATTACKER * TENANT_BYTES + COMPLETIONS
            self._bus.set_dram_fault(_SLVERR, base, COMPLETION.size << RING_LOG2, cycles=1 << 30)

        self._beside(rng, attack)
        soc, before = self._soc, self._soc.jobs[ATTACKER] - 1
        for _ in range(_CYCLES // 200):
            if soc.read(ATTACKER, "STATUS") & 15 == EngineState.FAULT:
                break
            self._bus.advance(200)
        else:
            raise Mismatch("a completion that cannot be written does not stop the engine")
        if soc.read(ATTACKER, "CPL_TAIL") != before:
            raise Mismatch("a completion that could not be written counts")
        self.reached["error of the completion ring"] += 1

    # -- what the victim waits for ---------------------------------------------------------------------------
    def _window(self, rng: random.Random) -> None:
        """The second job's prologue writes what the first one's body still reads."""
        size, slow = 512, rng.randint(2, 6)
        loads = [_copy(Op.LD2, 1, rng.randrange(1024), 7, 0, size) for _ in range(2)]
        bodies = [
            [*[_copy(Op.LD2, 1, rng.randrange(2048), 6, 0, 1024) for _ in range(slow)],
             _copy(Op.ST2, 7, 0, segment, rng.randrange(1024), size)]
            for segment in (3, 4)
        ]  # fmt: skip
        pair, author = self._pair, self._pair.authors[VICTIM]
        for load, body in zip(loads, bodies, strict=True):
            for insn in (load, *body):
                pair.machine.execute(insn, author.segments, VICTIM)
        words = [[load.encode(), Insn(Op.END).encode()] for load in loads] + [chain(body) for body in bodies]
        starts = [sum(map(len, words[:number])) for number in range(4)]
        code = [word for part in words for word in part]
        self._soc.queue(ATTACKER, _busy(rng))
        self._soc.ring(ATTACKER)
        for number in (0, 1):
            self._soc.queue(
                VICTIM, code, flags=int(JobFlag.PROLOGUE), prologue_pc=starts[number], body_pc=starts[2 + number],
                window_after=number,
            )  # fmt: skip
        self._soc.ring(VICTIM)
        ended = self._soc.wait(VICTIM, _CYCLES)
        if ended.status:
            raise Mismatch(f"a job behind another one's window ends with {ended}")
        self.reached["window_after"] += 1

    def _event(self, rng: random.Random) -> None:
        """The victim's job begins when the attacker's has retired often enough, and not before."""
        event, soc = rng.randrange(len(self._events)), self._soc
        now, wanted = self._bus.read_reg(self._events[event]), rng.randint(1, 2)
        second = rng.random() < 0.5
        fields = {f"wait{int(second)}_id": event, f"wait{int(second)}_value": (now + wanted) % (1 << 32)}
        victim = self._pair.authors[VICTIM].write(rng, flawed=False)
        soc.queue(VICTIM, victim.body, None, flags=int(JobFlag.WAIT1 if second else JobFlag.WAIT0), **fields)
        soc.ring(VICTIM)
        for given in range(wanted):
            self._bus.advance(rng.randrange(500, 4000))
            if soc.read(VICTIM, "CPL_TAIL") == soc.jobs[VICTIM]:
                raise Mismatch(f"a job that waits for {wanted} signals has ended after {given}")
            soc.queue(ATTACKER, _busy(rng), flags=int(JobFlag.SIGNAL), signal_id=event)
            soc.ring(ATTACKER)
            ended = soc.wait(ATTACKER, _CYCLES)
            if ended.status:
                raise Mismatch(f"a job that signals an event ends with {ended}")
        ended = soc.wait(VICTIM, _CYCLES)
        if ended.status:
            raise Mismatch(f"a job that waited for an event ends with {ended}")
        self.reached["events"] += 1


def _busy(rng: random.Random, *, faulty: bool = False) -> list[bytes]:
    """A program with many bursts under way, in its own segments, a point to pause at behind each few copies.
    ``faulty``: it ends with one that leaves its segment."""
    words = []
    for number in range(_COPIES):
        load = number % 2 == 0
        source, target = (rng.choice((1, 2, 4)), 6) if load else (6, rng.choice((2, 3, 4, 5)))
        op = Op.LD2 if load else Op.ST2
        words.append(_copy(op, source, rng.randrange(64), target, rng.randrange(64), rng.randint(64, 1900)).encode())
        if rng.random() < 0.3:
            words.append(raw_word(Op.CANCEL, {"point": number}))
    if faulty:
        flaw = _copy(Op.LD2, 1, 0x1000 - 8, 6, 0, 64)
        words.insert(rng.randrange(len(words) // 2, len(words) + 1), flaw.encode())
    return [*words, Insn(Op.END).encode()]


def _copy(op: Op, source: int, at: int, target: int, to: int, size: int) -> Insn:
    run = {"len": size, "hi": size, "hi1": 1, "hi0": 1}
    return Insn(op, {"src_seg": source, "src": at, "dst_seg": target, "dst": to, **run})
