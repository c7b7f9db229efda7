"""RTL against functional model on random programs, with a victim beside: one campaign machine for both figures."""

import random

import numpy as np

from benchmarks.trust.hidden_numbers import hidden, parameters
from benchmarks.trust.programs import Author, RandomProgram, contents
from benchmarks.trust.soc import CODE_BYTES, LV2_COPY, PARAMS, SEGMENTS, TENANT_BYTES, TenantSoc, segments_of
from benchmarks.trust.under_test import open_device
from hw.contract.bus import HostCosts
from hw.contract.isa import LV2_SEGMENTS, Insn, Segment
from hw.contract.job import JOB_MAGIC, Fault, FaultUnit, JobFlag
from sim.functional import FunctionalFault, Machine

ATTACKER, VICTIM = 0, 1
_BAD_DESCRIPTOR = (Fault.DESCRIPTOR, FaultUnit.RING)


class Mismatch(AssertionError):
    """RTL and model, or what must hold of them, differ; the message says where."""


class Pair:
    """One SoC and one functional model that see the same programs. ``backend``: see ``sim.backends``."""

    def __init__(self, backend: str = "native", corpus: list[Insn] | None = None) -> None:
        self.bus = open_device(PARAMS, backend, HostCosts.free())
        self.soc = TenantSoc(self.bus)
        self.machine = Machine(PARAMS)
        self.authors = [Author(self.machine, tenant, corpus) for tenant in (ATTACKER, VICTIM)]
        self.restart(random.Random(0))

    def close(self) -> None:
        """Close the simulator."""
        self.bus.close()

    def restart(self, rng: random.Random) -> None:
        """Bring everything to a state that depends on ``rng`` alone: both engines reset, constants in DRAM, known
        contents everywhere else."""
        self.bus.set_dram_fault(0)
        self.bus.set_stalls(1, 0)
        for tenant in (ATTACKER, VICTIM):
            self.soc.reset(tenant)
        for tenant in (ATTACKER, VICTIM):
            segments = segments_of(tenant)
            self._store(segments[Segment.WEIGHTS][0], contents(rng))
            for segment in (2, 3, 4, 5):
                base, size = segments[segment]
                self._store(base, rng.randbytes(size))
        lv2 = rng.randbytes(PARAMS.lv2_bytes)
        self.soc.store_lv2(VICTIM, lv2)
        self.machine.lv2[:] = np.frombuffer(lv2, np.uint8)
        for tenant in (ATTACKER, VICTIM):
            self._fill(tenant)
        self._compare_all("after the start")

    def _store(self, base: int, data: bytes) -> None:
        self.soc.store(base, data)
        self.machine.dram[base : base + len(data)] = np.frombuffer(data, np.uint8)

    def _fill(self, tenant: int) -> None:
        self.soc.queue(tenant, self.authors[tenant].fill())
        self.soc.ring(tenant)
        ended = self.soc.wait(tenant)
        if ended.status:
            raise Mismatch(f"the program that fills the memories of engine {tenant} ends with {ended}")

    def round(self, rng: random.Random, *, flawed: bool) -> str:
        """One program of the attacker beside one of the victim; returns what it showed. Raises :class:`Mismatch`,
        ``Wedged``."""
        if rng.random() < 0.1:
            self.stall(rng)
        hostile = self.authors[ATTACKER].write(rng, flawed=flawed)
        victim = self.authors[VICTIM].write(rng, flawed=False)
        fields = _odd_descriptor(rng) if not flawed and rng.random() < 0.1 else {}
        if fields:
            code, unit = (Fault.CYCLE_LIMIT, FaultUnit.EXECUTOR) if "cycle_limit" in fields else _BAD_DESCRIPTOR
            hostile.fault = FunctionalFault(code, 0, 0, unit, str(fields))
        body = hostile.body
        if not flawed and not fields and rng.random() < 0.3:
            values = parameters(rng)
            body = [word.encode() for word in hidden(rng, [Insn.decode(word) for word in body], values)]
            fields = {"flags": int(JobFlag.PARAMS)} | {f"param{number}": value for number, value in enumerate(values)}
        self.run_beside(rng, body, victim, fields)
        self.check(hostile)
        return "ends well" if hostile.fault is None else hostile.fault.code.name

    def stall(self, rng: random.Random) -> None:
        """Let the channels of the memory stall at random, or no longer."""
        self.bus.set_stalls(rng.randrange(1, 1 << 32), rng.choice((0, 0, 20, 100, 200)))

    def run_beside(
        self, rng: random.Random, body: list[bytes], victim: RandomProgram, fields: dict[str, int],
        prologue: list[bytes] | None = None,
    ) -> None:  # fmt: skip
        """Start the attacker's ``body`` and the victim's program in either order, and see that the victim's ends."""
        order = [ATTACKER, VICTIM]
        rng.shuffle(order)
        self.soc.queue(ATTACKER, body, prologue, **fields)
        self.soc.queue(VICTIM, victim.body)
        for tenant in order:
            self.soc.ring(tenant)
        self.check_victim(victim)

    def check_victim(self, victim: RandomProgram) -> None:
        """The victim's program must have ended well; its memory is compared with the rest."""
        ended = self.soc.wait(VICTIM)
        if ended.status:
            raise Mismatch(f"the victim's program ends with {ended}")

    def check(self, program: RandomProgram) -> None:
        """Compare how the attacker's newest job ended, and all memory; make the engine usable again."""
        ended, expected = self.soc.wait(ATTACKER), program.fault
        told: tuple[int, ...]
        found: tuple[int, ...]
        if expected is None:
            told, found = (Fault.NONE,), (ended.status,)
        elif expected.code in (Fault.CYCLE_LIMIT, Fault.DESCRIPTOR):
            told, found = (expected.code, expected.unit), (ended.status, ended.unit)
        elif expected.unit in (FaultUnit.MAC, FaultUnit.VEC):  # they stop at the first address; the model looks at all
            told, found = (expected.code, expected.unit, expected.pc), (ended.status, ended.unit, ended.pc)
        else:
            told = (expected.code, expected.unit, expected.pc, expected.addr)
            found = (ended.status, ended.unit, ended.pc, ended.address)
        if found != tuple(map(int, told)):
            raise Mismatch(
                f"the RTL says {Fault(ended.status).name} {found}, the model {told} ({expected})\n{text(program)}"
            )
        if expected is None:
            self._compare_all("after a program that ends well", program)
            if not program.defined:
                self._fill(ATTACKER)
            return
        self.recover(program)

    def recover(self, program: RandomProgram | None) -> None:
        """Nothing but what the last instructions may have written differs; the engine is reset and filled anew.
        None: a program of which no model says what it does, but that must keep to its segments."""
        self.soc.reset(ATTACKER)
        author = self.authors[ATTACKER]
        dram, lv2 = self._rtl()
        self._outside(dram, lv2, program)
        (low, high), (first, end) = author.lv2_range, author.dram_range
        mine = (lv2[low:high], dram[first:end])
        if (
            program is not None
            and program.defined
            and not any(self._reached(mine, program, k) for k in self._candidates(program))
        ):
            raise Mismatch(f"memory after the fault is that of no moment before it\n{text(program)}")
        self.machine.lv2[low:high], self.machine.dram[first:end] = mine
        self._fill(ATTACKER)
        self._compare_all("after the engine was made usable again", program)

    def _candidates(self, program: RandomProgram) -> list[int]:
        """How many instructions may have run: any number where the executor ended the body, as it decodes ahead."""
        ran = len(program.states) - 1
        assert program.fault is not None
        if program.fault.unit == FaultUnit.RING:
            return [0]
        return list(range(ran + 1)) if program.fault.unit == FaultUnit.EXECUTOR else [ran]

    def _reached(self, mine, program: RandomProgram, ran: int) -> bool:
        """Whether memory is as after ``ran`` instructions, but for what the next one stores to."""
        author = self.authors[ATTACKER]
        lv2, dram = program.states[ran]
        differs = mine[0] != lv2, mine[1] != dram
        under_way = ran < len(program.writes) and program.fault is not None and program.fault.unit != FaultUnit.RING
        segment = program.writes[ran] if under_way else None
        if segment is not None:
            base, size = author.segments[segment]
            side = segment not in LV2_SEGMENTS
            begin = (author.dram_range if side else author.lv2_range)[0]
            differs[side][base - begin : base - begin + size] = False
        return not (differs[0].any() or differs[1].any())

    def _rtl(self) -> tuple[np.ndarray, np.ndarray]:
        """DRAM and LV2 of the hardware."""
        lv2 = np.frombuffer(self.soc.lv2(VICTIM), np.uint8)
        return np.frombuffer(self.bus.read_mem(0, LV2_COPY, charge=False), np.uint8), lv2

    def _outside(self, dram, lv2, program: RandomProgram | None) -> None:
        """Nothing outside the attacker's segments may differ from the model; rings and code are as the host wrote
        them."""
        author = self.authors[ATTACKER]
        strange = self.soc.strangers_write(dram.tobytes())
        if strange is not None:
            raise Mismatch(f"DRAM at {strange:#x}, where the host alone writes, has changed\n{text(program)}")
        for memory, found, known, mine in (
            ("DRAM", dram, self.machine.dram, author.dram_range),
            ("LV2", lv2, self.machine.lv2, author.lv2_range),
        ):
            differs = found != known[: found.size]
            differs[slice(*mine)] = False
            if memory == "DRAM":
                for tenant in (ATTACKER, VICTIM):  # looked at above
                    base = tenant * TENANT_BYTES
                    differs[base : base + SEGMENTS + CODE_BYTES] = False
            if differs.any():
                raise Mismatch(
                    f"{memory} at {int(differs.argmax()):#x} is not the attacker's, and changed\n{text(program)}"
                )

    def _compare_all(self, when: str, program: RandomProgram | None = None) -> None:
        dram, lv2 = self._rtl()
        self._outside(dram, lv2, program)
        author = self.authors[ATTACKER]
        for memory, found, known, mine in (
            ("DRAM", dram, self.machine.dram, author.dram_range),
            ("LV2", lv2, self.machine.lv2, author.lv2_range),
        ):
            part = slice(*mine)
            if not np.array_equal(found[part], known[part]):
                at = mine[0] + int((found[part] != known[part]).argmax())
                if program is None or program.defined:
                    raise Mismatch(f"{memory} at {at:#x} differs from the model {when}\n{text(program)}")
                known[part] = found[part]


_FLAGS = int(max(JobFlag)).bit_length()  #: bits of flags that mean something


def _odd_descriptor(rng: random.Random) -> dict[str, int]:
    """Members of a descriptor that the hardware refuses, or a limit of few cycles."""
    events = PARAMS.events
    return rng.choice(
        (
            {"cycle_limit": rng.randint(1, 12)},
            {"magic": rng.randrange(JOB_MAGIC)},
            {"flags": 1 << rng.randrange(_FLAGS, 16)},
            {"body_pc": 1 << rng.randrange(24, 32)},
            {rng.choice(("wait0_id", "wait1_id", "signal_id")): rng.randrange(events, 256)},
            {f"sem{rng.randrange(PARAMS.semaphores)}": 255, "flags": 1 << _FLAGS},
            {"base0": 64 * rng.randrange(64) + rng.randrange(1, 64)},
            {f"base{rng.randrange(8)}": 1 << rng.randrange(32, 64)},
            {f"limit{rng.choice((6, 7))}": PARAMS.lv2_bytes + 1 + rng.randrange(1 << 20)},
        )
    )


def text(program: RandomProgram | None) -> str:
    """The instructions of a program, one a line."""
    if program is None:
        return ""
    lines = []
    for pc, word in enumerate(program.body):
        try:
            lines.append(f"{pc:3} {Insn.decode(word)}")
        except ValueError as error:
            lines.append(f"{pc:3} {word.hex()} ({error})")
    return "\n".join(lines)
