"""What the accounts of time say of instructions, programs and regions that no compiler made."""

import random
from collections.abc import Callable, Iterator

from hw.contract.isa import UNIT_OF, Insn, Op
from hw.contract.params import SocParams
from sim.cost.bound import worst_intervals
from sim.cost.dram import WorstDram, load_cycles
from sim.cost.region_time import side_by_side_cycles
from sim.cost.rivals import PORTS, Others, Rivals, lost
from sim.cost.shapes import essence
from sim.cost.traffic import beside
from sim.cost.units import insn_cycles, worst_time
from tests.sim.cost.accounts import Digests, Ledger
from tests.sim.cost.corpus_cases import ALL, hardware
from tests.sim.cost.test_region_time import random_members
from tests.sim.cost.test_worst_walk import random_insn, random_program

_OTHERS = (
    Others(),
    Others(1),
    Others(3, 0, ((16_384, 900), (32_768, 1500), (65_536, 2500)), 24),
    Others(1, 5, ((16_384, 400), (65_536, 1100)), 3, 2),
)


def hardware_digests(name: str, engines: int, ledger: Ledger | None = None) -> Digests:
    """What all accounts say of instructions and programs on a preset."""
    ledger, params = ledger or Ledger(), hardware(name, engines)
    rng = random.Random(f"{name} {engines}")
    insns = list(_insns(rng, 300))
    for insn in insns:
        ledger.note("typical", insn_cycles(insn.op, insn.fields, params, engines))
    for length in (1, 16, 60, 256, 5000):
        ledger.note("typical", [load_cycles(runs, length, params) for runs in (1, 7, 300)])
    _note_worst(ledger, rng, insns, params)
    return ledger.digests


def _insns(rng: random.Random, count: int) -> Iterator[Insn]:
    while count:
        insn = random_insn(rng)
        if insn.op in UNIT_OF:
            count -= 1
            yield insn


def _note_worst(ledger: Ledger, rng: random.Random, insns: list[Insn], params: SocParams) -> None:
    """The longest durations, DRAM at the worst, conflicts, traffic, and bounds of programs."""
    for others in _OTHERS:
        for ops in (frozenset(Op), frozenset({Op.LD2, Op.MAC}), frozenset({Op.VEC, Op.LD1, Op.ST2})):
            rivals = Rivals(others, ops, bool(rng.randint(0, 1)), fetched=rng.choice([None, 70]))
            memory = WorstDram(params, rivals)
            ledger.note("worst DRAM", memory.latency, memory.job, memory.fetched, memory.fetch, memory.completion)
            ledger.note("worst DRAM", memory.insn, memory.debt(1000), [memory.between(op) for op in (Op.LD2, Op.ST2)])
            for insn in rng.sample(insns, 60):
                ledger.note("worst durations", worst_time(essence(insn, params), params, rivals, memory))
    clients = [client for clients in PORTS for client in clients]
    for _ in range(20):
        words = {client: rng.randint(0, 500) for client in clients}
        ledger.note("conflicts", lost(words, rng.sample(clients, 3)))
    for _ in range(6):
        bodies = [[random_program(rng) for _ in range(2)] for _ in range(params.engines)]
        ledger.note("traffic", beside(bodies, params, rng.choice([0, 4096])))
    for number in range(8):
        bounds = worst_intervals(random_program(rng), params, _OTHERS[number % len(_OTHERS)], bool(number % 3))
        ledger.note("worst cases", bounds)


def region_digests(ledger: Ledger | None = None) -> Digests:
    """Cycles of random regions, from shapes alone."""
    ledger = ledger or Ledger()
    for seed in range(300):
        ledger.note("region time", side_by_side_cycles(random_members(random.Random(seed))))
    return ledger.digests


def synthetic_cases() -> Iterator[tuple[str, Callable[[Ledger], Digests]]]:
    """The name of each case, and what gives its digests."""
    for name, engines in ALL:
        yield f"{name}x{engines} instructions", lambda ledger, one=(name, engines): hardware_digests(*one, ledger)
    yield "regions", region_digests
