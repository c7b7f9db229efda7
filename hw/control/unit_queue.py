"""Defines the queue in front of one unit, and the RAM that holds its entries."""

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.formats import format_bits
from hw.contract.isa import DESTINATION_SEGMENTS, FORMATS, INSN_BITS, SOURCE_SEGMENTS, UNIT_OF, Unit
from hw.contract.params import SocParams
from hw.contract.timing import UNIT_IN_FLIGHT
from hw.control.decode import field_bits
from hw.interfaces import ADDR, COMMAND, PC


class RamQueue(wiring.Component):
    """Holds ``depth`` entries (a power of two) in a RAM and one more at the head. The bits ``slow`` of an entry lie in
    block RAM, which is slow to answer. A single entry lies in registers.

    An entry that enters an empty queue is at the head two cycles later. The head is replaced in the cycle after it
    was taken, if another entry waits.

    Members
    -------
    i : In(stream of ``shape``)
    o : Out(stream of ``shape``)
        The head.
    empty : Out(1)
        No entry, neither at the head nor on its way there.
    """

    def __init__(self, shape, depth: int, slow: slice = slice(0, 0)) -> None:
        if depth < 1 or depth & (depth - 1):
            raise ValueError(f"the depth of a queue must be a power of two, not {depth!r}")
        self._shape, self._depth, self._slow = shape, depth, slow
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "empty": Out(1)})
        # State, here rather than in elaborate() so that a proof can relate it to what the queue has seen.
        self._level = Signal(range(depth + 1))  #: entries in the RAM
        self._oldest = Signal(range(depth))  #: row of the oldest of them
        self._next = Signal(range(depth))  #: row of the next one
        self._row = Signal(Shape.cast(shape).width, reset_less=True)  #: the only row where ``depth`` is 1

    def elaborate(self, platform) -> Module:
        m = Module()
        push, pop = Signal(), Signal()
        rows = self._register if self._depth == 1 else self._rams
        m.d.comb += [
            self.i.ready.eq(self._level != self._depth),
            push.eq(self.i.valid & self.i.ready),
            pop.eq((self._level != 0) & (~self.o.valid | self.o.ready)),
            self.o.payload.eq(rows(m, push, pop, Value.cast(self.i.payload))),
            self.empty.eq((self._level == 0) & ~self.o.valid),
        ]
        m.d.sync += self._level.eq(self._level + push - pop)
        with m.If(pop):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

    def _register(self, m: Module, push: Signal, pop: Signal, entry: Value) -> Value:
        """Return the head of a queue that has a single row."""
        head = Signal(len(entry), reset_less=True)
        with m.If(push):
            m.d.sync += self._row.eq(entry)
        with m.If(pop):
            m.d.sync += head.eq(self._row)
        return head

    def _rams(self, m: Module, push: Signal, pop: Signal, entry: Value) -> Value:
        """Return the head of a queue whose rows are in RAMs."""
        first, last = self._slow.start, self._slow.stop
        parts = {"ram": Cat(entry[:first], entry[last:]), "block": entry[first:last]}
        kept = {}
        for name, part in parts.items():
            if not len(part):
                continue
            attrs = BLOCK_RAM | NO_COLLISION if name == "block" else {}
            m.submodules[name] = ram = Memory(shape=len(part), depth=self._depth, init=[], attrs=attrs)
            write, read = ram.write_port(), ram.read_port()
            m.d.comb += [
                write.en.eq(push), write.addr.eq(self._next), write.data.eq(part),
                read.en.eq(pop), read.addr.eq(self._oldest),
            ]  # fmt: skip
            kept[name] = read.data
        with m.If(push):
            m.d.sync += self._next.eq(self._next + 1)
        with m.If(pop):
            m.d.sync += self._oldest.eq(self._oldest + 1)
        if "block" not in kept:
            return kept["ram"]
        return Cat(kept["ram"][:first], kept["block"], kept["ram"][first:])


#: Which ends of a command have a segment; the others are checked against the size of a memory.
_SOURCE_SEGMENT = [UNIT_OF[op] for op in SOURCE_SEGMENTS]
_MASKS = ("wait", "signal")  #: the fields behind the opcode
_DESTINATION_SEGMENT = [UNIT_OF[op] for op in DESTINATION_SEGMENTS]


class UnitQueue(wiring.Component):
    """Holds commands of one unit in order, takes the semaphores of the head, and signals as commands finish.

    Commands lie in a :class:`RamQueue` that stores only what the unit looks at. A unit that
    accepts early sees the next command two cycles after the last one (semaphores available), so a command of
    hundreds of cycles hides the queue completely.

    Members
    -------
    push : In(stream of COMMAND)
        Commands with their segments resolved.
    cmd, done
        The unit's, see :class:`hw.interfaces.UnitPort`.
    wait, request, grant, signal
        To :class:`hw.control.semaphores.SemaphoreFile`.
    signal_pc : Out(PC)
        PC of the command that signals in this cycle.
    halt : In(1)
        From the next cycle on offer nothing to the unit and ask for no semaphores.
    idle : Out(1)
        Nothing queued and nothing in flight.
    empty : Out(1)
        Nothing queued (the unit may still be busy).
    stuck : Out(1)
        The head waits for semaphores and the unit has nothing in flight.
    head_pc : Out(PC)
    """

    def __init__(self, params: SocParams, unit: Unit) -> None:
        self.params, self.unit = params, unit
        self.op = next(op for op, u in UNIT_OF.items() if u == unit)
        n = params.semaphores
        super().__init__(
            {
                "push": In(stream.Signature(COMMAND)),
                "cmd": Out(stream.Signature(COMMAND)),
                "done": In(1),
                "wait": Out(n),
                "request": Out(1),
                "grant": In(1),
                "signal": Out(n),
                "signal_pc": Out(PC),
                "halt": In(1),
                "idle": Out(1),
                "empty": Out(1),
                "stuck": Out(1),
                "head_pc": Out(PC),
            }
        )
        # Commands of DRAM's loads are the widest and in no hurry; their semaphores, which come first, are.
        entry, masks = self._entry(), format_bits(FORMATS[self.op][: 1 + len(_MASKS)]) - 8
        slow = slice(masks, entry.size - 1) if unit == Unit.LD2 else slice(0, 0)
        self._queue = RamQueue(entry, params.unit_queue_depth, slow)
        self._flying = RamQueue(data.StructLayout({"signal": n, "pc": PC}), UNIT_IN_FLIGHT)
        self._in_flight = Signal(range(UNIT_IN_FLIGHT + 1))  #: commands accepted and not yet signalled
        self._owed = Signal(range(UNIT_IN_FLIGHT + 1))  #: of those, commands that are done
        self._granted = Signal()  #: the head has its semaphores
        # What keeps the head back is known ahead, in registers of each queue: a level that stops all of an engine comes
        # from afar, and what follows the head, its own registers above all, is at the end of long paths.
        self._asks = Signal(init=1)  #: the head may ask for semaphores: not granted, not halted
        self._open = Signal(init=1)  #: the unit may be offered the head: room to remember it, not halted

    def _entry(self) -> data.StructLayout:
        """Return what is kept of a command; ``needs``, at the end, says that it waits for semaphores at all."""
        members = {"insn": format_bits(FORMATS[self.op]) - 8, "pc": PC}
        if self.unit in _SOURCE_SEGMENT:
            members |= {"src_base": ADDR, "src_limit": ADDR}
        if self.unit in _DESTINATION_SEGMENT:
            members |= {"dst_base": ADDR, "dst_limit": ADDR}
        return data.StructLayout(members | {"needs": 1})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = self._queue
        m.submodules.flying = flying = self._flying
        in_flight, owed, granted = self._in_flight, self._owed, self._granted

        # Write side.
        command = self.push.payload
        m.d.comb += [
            self.push.ready.eq(queue.i.ready),
            queue.i.valid.eq(self.push.valid),
            queue.i.payload.needs.eq(self._field(command.insn, "wait").any()),
            queue.i.payload.insn.eq(command.insn[8:]),
        ]
        passed = [name for name in self._entry().members if name not in ("needs", "insn")]
        for name in passed:
            m.d.comb += queue.i.payload[name].eq(command[name])

        # Head: its semaphores.
        head = queue.o.payload
        take = Signal()
        insn = Signal(INSN_BITS)
        m.d.comb += [
            queue.o.ready.eq(take),
            insn.eq(Cat(Const(int(self.op), 8), head.insn)),
            self.wait.eq(self._field(insn, "wait")),
            self.request.eq(queue.o.valid & head.needs & self._asks),
        ]
        has = (granted | self.grant) & ~take
        m.d.sync += [granted.eq(has), self._asks.eq(~has & ~self.halt)]

        # To the unit, as long as there is room to remember the command until it is done.
        m.d.comb += [
            self.cmd.valid.eq(queue.o.valid & (granted | ~head.needs) & self._open),
            self.cmd.payload.insn.eq(insn),
            take.eq(self.cmd.valid & self.cmd.ready),
        ]
        for name in passed:
            m.d.comb += self.cmd.payload[name].eq(head[name])

        # Commands in flight. A unit may be done before the queue shows the entry: remember how often.
        finish = Signal()
        last = flying.o.payload
        m.d.comb += [
            flying.i.valid.eq(take),
            flying.i.payload.signal.eq(self._field(insn, "signal")),
            flying.i.payload.pc.eq(head.pc),
            finish.eq(flying.o.valid & (self.done | (owed != 0))),
            flying.o.ready.eq(finish),
            self.signal_pc.eq(last.pc),
        ]
        with m.If(finish):
            m.d.comb += self.signal.eq(last.signal)
        flight = in_flight + take - finish
        m.d.sync += [
            owed.eq(owed + self.done - finish),
            in_flight.eq(flight),
            self._open.eq((flight != UNIT_IN_FLIGHT) & ~self.halt),
        ]

        m.d.comb += [
            self.empty.eq(queue.empty),
            self.idle.eq(self.empty & (in_flight == 0)),
            self.stuck.eq(queue.o.valid & head.needs & ~granted & (in_flight == 0)),
            self.head_pc.eq(head.pc),
        ]
        return m

    def _field(self, insn: Value, name: str) -> Value:
        return field_bits(insn, self.op, name)[: self.params.semaphores]
