"""Models the memories that engines share: DRAM and the way to it, ``sim/dram.py`` behind ``hw/axi/interconnect.py``,
burst by burst, and the write ports of LV2, ``hw/scratchpad.py``, where loads of LD2 meet stores of ST1 at a bank."""

import ctypes
from array import array
from collections import deque
from functools import lru_cache
from typing import Any

import numpy as np

from hw.contract import timing
from hw.contract.params import SocParams
from sim.cost.exact.copies import CopySteps, written_words
from sim.dram import FULL, DramFault
from sim.model.agenda import Agenda
from sim.model.bank_ports import BankPorts
from sim.model.commands import Carrier, Client, Command, Served
from sim.model.core import DONE, GIVEN_UP, IN_PYTHON, STRUCK, TAKEN, Client as ClientState, Core, Params

#: Words of stores on their way between the realigner and the memory.
STORE_BUFFERED = timing.WORDS_BEHIND + timing.DRAM_WRITE_BEATS + 2
NOWHERE = -1  #: no bank


class MemoryModel:
    """Models the memory port of the SoC: it takes one address per cycle, reads in order, writes in order, with turns
    between them.

    A request goes through the register of its address channel, for which requests of one cycle are chosen round robin,
    to a queue of ``DRAM_QUEUE_BURSTS`` behind the burst in service. While the queue is full, it stays in the register.

    Reads and writes take turns, burst by burst. So what becomes due amid a burst of the other kind interrupts it if
    the last to end was of that other kind, too.
    """

    def __init__(self, params: SocParams, agenda: Agenda) -> None:
        self.agenda = agenda
        self.core: Core = agenda.core
        self.core.tell(accepted=self._accepted, served=self._served, command=self._command)
        self._address, self._request, self._state = self.core.address, self.core.call.request, self.core.state
        self.core.call.memory(self._address, ctypes.byref(_numbers(params)))
        self.bank_ports = BankPorts(params, self.core)
        self.lv2_writes = Lv2Writes(params, self.core)
        self._clients: dict[tuple[int, bool], tuple[Any, int]] = {}
        self._requests: dict[int, tuple[Client, Served, Any]] = {}
        self._number = 0
        self._carriers: list[Carrier] = []
        self._commands: dict[int, tuple[Carrier, Command]] = {}

    # -- single bursts ---------------------------------------------------------------------------------------
    def request(
        self, time: int, client: Client, write: bool, address: int, beats: int, served: Served, subject: Any
    ) -> int:
        """``client`` offers a burst from cycle ``time`` on; the data of a write follows without a gap. Return the cycle
        from which it may offer the next, or ``HELD``: then it will be told."""
        known = self._clients.get((client.port, write))
        if known is None:
            state = ClientState(IN_PYTHON, client.port, 0, 0, None)
            known = self._clients[client.port, write] = state, ctypes.addressof(state)
        self._number = number = self._number + 1
        self._requests[number] = (client, served, subject)
        accepted: int = self._request(self._address, known[1], time, write, address, beats, number)
        return accepted

    def _accepted(self, number: int, time: int) -> None:
        self._requests[number][0].accepted(time)

    def _served(self, number: int, time: int) -> None:
        _, served, subject = self._requests.pop(number)
        served(time, subject)

    @property
    def failed(self) -> bool:
        """Return whether the burst that has just ended was answered with an error."""
        return bool(self._state.failed)

    @property
    def resumed(self) -> int:
        """Return how many beats of the burst that has just ended moved behind an interruption."""
        beats: int = self._state.resumed
        return beats

    @property
    def bursts(self) -> int:
        """Return how many bursts were ever accepted."""
        count: int = self._state.bursts_accepted
        return count

    # -- commands of units -----------------------------------------------------------------------------------
    def carried_by(self, carrier: Carrier) -> int:
        """Return the number that the unit ``carrier`` gets."""
        self._carriers.append(carrier)
        return len(self._carriers) - 1

    def command(self, carrier: Carrier, command: Command) -> int:
        """Return the number of a command that ``carrier`` gets."""
        self._number = number = self._number + 1
        self._commands[number] = (carrier, command)
        return number

    def forget_commands(self, carrier: Carrier, side: int | None = None) -> None:
        """Forget the commands of ``carrier``, or those of a ``side``: they will not be done."""
        for number, (known, command) in list(self._commands.items()):
            if known is carrier and side in (None, command.side):
                del self._commands[number]

    def _command(self, what: int, number: int, time: int, burst: int) -> None:
        if what == TAKEN:
            self._commands[number][1].accepted(time)
        elif what == DONE:
            self._commands.pop(number)[1].done(time)
        elif what == STRUCK:
            carrier, command = self._commands[number]
            carrier.struck(time, command, burst)
        else:
            assert what == GIVEN_UP
            self._carriers[number].given_up(time)

    # -- what the memory is like -----------------------------------------------------------------------------
    def set_timing(self, latency: int, row_miss: int, bandwidth: int) -> None:
        """Give the DRAM this timing from now on."""
        self.core.call.set_timing(self._address, latency, row_miss, bandwidth)

    def set_fault(self, now: int, kind: int, base: int, last: int, begin: int, end: int) -> None:
        """Let the DRAM fail from cycle ``begin`` to before ``end`` with this ``kind``; ``base`` to ``last`` are
        bytes."""
        fails = kind in (DramFault.SLVERR, DramFault.DECERR)
        self.core.call.set_fault(self._address, now, fails, kind == DramFault.FREEZE, base, last, begin, end)
        self.core.check()

    def set_stalls(self, now: int, seed: int, rate: int) -> None:
        """Stall each channel in ``rate`` of 256 cycles from cycle ``now`` on."""
        self.core.call.set_stalls(self._address, now, seed, rate)


def _numbers(p: SocParams) -> ctypes.Structure:
    """Return what the core has to know of a machine."""
    return Params(
        p.dram_latency, p.dram_row_miss, p.dram_bandwidth, p.dram_row_bytes.bit_length() - 1, p.dram_banks,
        p.dram_banks.bit_length() - 1, p.dram_refresh_interval, p.dram_refresh_cycles, timing.DRAM_QUEUE_BURSTS,
        timing.AXI_STAGE, timing.AXI_RETURN, timing.DRAM_QUEUED, timing.WRITE_BUFFERED, p.engines, p.lv1_word,
        p.dram_word, p.lv2_banks, p.axi_outstanding, timing.UNIT_IN_FLIGHT, timing.COPY_PLANNED, timing.COPY_FETCHED,
        timing.COPY_FILLED, timing.COPY_LANDED, timing.SETTLED, STORE_BUFFERED, FULL,
        timing.COPY_FETCHED - timing.COPY_ASKED,
    )  # fmt: skip


@lru_cache(maxsize=1 << 8)
def _banks(word: int, banks: int, first: int, fields: tuple[int, ...]) -> "array[int]":
    """Return to which of ``banks`` each step of a copy writes a word, or NOWHERE; ``first`` is the bank of byte 0."""
    words = np.asarray(written_words(word, fields))
    return array("i", np.where(words < 0, NOWHERE, (first + words) % banks).tolist())


class Lv2Writes:
    """Knows who writes which bank when. Stores are known ahead of time, loads burst by burst as their words come.

    A bank takes the first port from a turn that moves on in every cycle in which some port must wait. A load that waits
    holds up the data behind it; a store goes on, and ends, later. Stores that meet each other where no load comes are
    followed in ``BankPorts``; loads of two engines are not.
    """

    def __init__(self, params: SocParams, core: Core) -> None:
        self._word, self._count, self._core = params.lv1_word, params.lv2_banks, core
        #: Word of byte 0 and what the formulas say: the banks of a store are worked out when a load may meet it.
        self._stores: list[deque[tuple[int, CopySteps]]] = [deque() for _ in range(params.engines)]
        core.tell(banks=self._banks)

    def store(self, engine: int, done: int, into: int, work: CopySteps) -> None:
        """Enter a copy of ST1 to byte ``into`` of LV2 that will signal at ``done``."""
        left = self._core.call.lv2_store(self._core.address, engine, done - work.steps, work.steps)
        stores = self._stores[engine]
        stores.append((into // self._word, work))
        while len(stores) > left:
            stores.popleft()

    def forget(self, engine: int) -> None:
        """Forget the stores of the ST1 of ``engine``, which has nothing to write any more."""
        self._core.call.lv2_forget(self._core.address, engine)
        self._stores[engine].clear()

    def _banks(self, engine: int, left: int, length: Any) -> int:
        first, work = self._stores[engine][-left]
        banks = _banks(self._word, self._count, first % self._count, work.fields)
        length[0] = len(banks)
        address: int = banks.buffer_info()[0]
        return address
