"""Every edge of what a job may do, one byte, one count or one bit to either side, on the RTL: how it must end is
written down by hand, and what is not the job's own stays as it is."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from benchmarks.trust.edges_case import EdgeCase, Ending
from benchmarks.trust.edges_compute import mac, vec
from benchmarks.trust.edges_copies import copies
from benchmarks.trust.edges_jobs import jobs
from benchmarks.trust.soc import (
    CODE_BYTES,
    LAYOUT,
    LV2_COPY,
    PARAMS,
    TENANT_BYTES,
    Ended,
    TenantSoc,
    Wedged,
    segments_of,
)
from benchmarks.trust.under_test import open_device
from hw.contract.bus import HostCosts
from hw.contract.job import Fault, FaultUnit
from hw.contract.params import SocParams

#: Few semaphores with low counts, few events, two groups of VEC lanes.
SECOND = PARAMS.replace(name="edges", semaphores=16, semaphore_max=3, events=8, pes=4)
_CYCLES = 20_000  #: that a job of these may take
_ATTACKER, _OTHER = 0, 1


class WrongEnding(AssertionError):
    """A job at an edge ended in another way than it must; or something that is not its own has changed."""


def cases(params: SocParams) -> Iterator[EdgeCase]:
    """All of them, for the segments of :data:`benchmarks.trust.soc.LAYOUT`."""
    sizes = [size for _, size in LAYOUT[_ATTACKER]]
    return chain(copies(params, sizes), mac(params), vec(params), jobs(params, sizes))


class EdgeCampaign:
    """A round is all cases, in an order of its own, with data of its own."""

    def __init__(self, params: SocParams, backend: str) -> None:
        self.reached: Counter[str] = Counter()
        self._soc = TenantSoc(open_device(params, backend, HostCosts.free()))
        self._cases = list(cases(params))

    def close(self) -> None:
        """Close the simulator."""
        self._soc.bus.close()

    def round(self, seed: int) -> str:
        """All cases. Raises :class:`WrongEnding`."""
        rng = random.Random(seed)
        before = _known_contents(self._soc, rng)
        for case in rng.sample(self._cases, len(self._cases)):
            self.run(case)
        _compare(self._soc, before)
        return "all cases"

    def run(self, case: EdgeCase) -> None:
        """One case. Raises :class:`WrongEnding`."""
        soc = self._soc
        soc.queue(_ATTACKER, list(case.body), list(case.prologue), **case.fields)
        soc.ring(_ATTACKER)
        try:
            ended = soc.wait(_ATTACKER, _CYCLES)
            if ended.status:
                soc.reset(_ATTACKER)
        except Wedged as error:
            raise WrongEnding(f"{case.kind}, {case.what}: {error}") from None
        if not _as_told(ended, case.ending):
            raise WrongEnding(
                f"{case.kind}, {case.what}: it must end with {_words(case.ending)}, not with "
                f"{Fault(ended.status).name} of {FaultUnit(ended.unit).name} at PC {ended.pc}, {ended.address:#x}"
            )
        self.reached[case.kind] += 1


def first(backend: str) -> EdgeCampaign:
    """The hardware that the other campaigns of programs attack."""
    return EdgeCampaign(PARAMS, backend)


def second(backend: str) -> EdgeCampaign:
    """Another configuration, whose masks and counts are not what their fields could hold."""
    return EdgeCampaign(SECOND, backend)


def _as_told(ended: Ended, told: Ending) -> bool:
    if ended.status != told.code:
        return False
    if told.code is Fault.NONE:
        return True
    places = ((told.pc, ended.pc), (told.address, ended.address))
    return ended.unit == told.unit and all(wanted in (None, found) for wanted, found in places)


def _words(told: Ending) -> str:
    where = "" if told.address is None else f", {told.address:#x}"
    pc = "" if told.pc is None else f" at PC {told.pc}"
    return "success" if told.code is Fault.NONE else f"{told.code.name} of {told.unit.name}{pc}{where}"


def _known_contents(soc: TenantSoc, rng: random.Random) -> tuple[bytes, bytes]:
    """Fill DRAM; what LV2 holds is enough of a canary."""
    soc.bus.write_mem(2 * TENANT_BYTES, bytes(LV2_COPY - 2 * TENANT_BYTES), charge=False)
    for tenant in (_ATTACKER, _OTHER):
        for base, size in segments_of(tenant)[1:6]:
            soc.bus.write_mem(base - 32, rng.randbytes(size + 64), charge=False)
    return _memory(soc)


def _memory(soc: TenantSoc) -> tuple[bytes, bytes]:
    lv2 = soc.lv2(_OTHER)
    return soc.bus.read_mem(0, LV2_COPY, charge=False), lv2


def _compare(soc: TenantSoc, before: tuple[bytes, bytes]) -> None:
    """Only what the cases may store to has changed: their segments, but for constants; rings and code are the
    host's."""
    segments = segments_of(_ATTACKER)
    stores = ([*segments[2:6], (0, segments[0][0] + CODE_BYTES), (TENANT_BYTES, 0x3000)], segments[6:])
    for memory, old, new, mine in zip(("DRAM", "LV2"), before, _memory(soc), stores, strict=True):
        found, known = bytearray(new), bytearray(old)
        for base, size in mine:
            found[base : base + size] = known[base : base + size] = bytes(size)
        if found != known:
            at = next(i for i, (a, b) in enumerate(zip(found, known, strict=True)) if a != b)
            raise WrongEnding(f"{memory} at {at:#x} belongs to no case, and has changed")
