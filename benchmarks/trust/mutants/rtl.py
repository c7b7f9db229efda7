"""Breakages of the RTL."""

from benchmarks.trust.mutants.mutant import Mutant

_EDGES, _SECOND = ("edges",), ("edges_second",)

RTL = (
    Mutant(
        "R1", "a copy may go one byte beyond its segment", "hw/dma/planner.py",
        "return wholly | (end[:ADDR] > limit) | around", "return wholly | (end[:ADDR] > limit + 1) | around",
        "P1", _EDGES, "LD2 dst",
    ),
    Mutant(
        "R2", "a run around the end of the address space passes", "hw/dma/planner.py",
        "return wholly | (end[:ADDR] > limit) | around", "return wholly | (end[:ADDR] > limit)",
        "P1", _EDGES, "LD2 src",
    ),
    Mutant(
        "R3", "the end of a wide table is that of a short one", "hw/vec/check.py",
        "insn.t + WIDE_TABLE_BYTES > params.lv1_bytes", "insn.t + TABLE_BYTES > params.lv1_bytes",
        "P1", _EDGES, "VEC",
    ),
    Mutant(
        "R4", "a parameter block may go one word beyond LV1", "hw/vec/check.py",
        "insn.p + block > params.lv1_bytes", "insn.p + block > params.lv1_bytes + params.lv1_word",
        "P1", _EDGES, "VEC",
    ),
    Mutant(
        "R5", "VEC may write one vector behind LV1", "hw/vec/unit.py",
        "d_bad = walker.d >= params.lv1_bytes", "d_bad = walker.d > params.lv1_bytes",
        "P1", _EDGES, "VEC",
    ),
    Mutant(
        "R6", "MAC may write one row behind the accumulators", "hw/mac/sequencer.py",
        "acc_bad = acc.addr >= p.lv0_acc_rows", "acc_bad = acc.addr > p.lv0_acc_rows",
        "P1", _EDGES, "MAC",
    ),
    Mutant(
        "R7", "a segment may end one byte behind its memory", "hw/control/ring.py",
        ".append(end > size)", ".append(end > size + 1)",
        "P1", _EDGES, "descriptors",
    ),
    Mutant(
        "R8", "a descriptor may set semaphores above their largest count", "hw/control/ring.py",
        "largest = self.params.semaphore_max if i < self.params.semaphores else 0", "largest = 255",
        "P1", _SECOND, "descriptors",
    ),
    Mutant(
        "R9", "a descriptor may name events that are not there", "hw/control/ring.py",
        "member(word, name) >= self.params.events", "member(word, name) > 255",
        "P1", _EDGES, "descriptors",
    ),
    Mutant(
        "R10", "the instruction behind the code is fetched", "hw/control/fetch.py",
        "beyond.eq(next_pc >= end)", "beyond.eq(next_pc > end)",
        "P1", _EDGES, "code",
    ),
    Mutant(
        "R11", "a reset does not wait for what is under way", "hw/engine.py",
        "waits = self.busy & self.quiet & ~self.reset", "waits = self.busy & ~self.reset",
        "P3", ("neighbours",), "reset in mid-flight",
    ),
    Mutant(
        "R12", "the LV0 of one PE is as large as that of all", "hw/dma/units.py",
        "interleaved = insn.view == Lv0View.INTERLEAVED", "interleaved = insn.view >= Lv0View.MULTICAST",
        "P1", _EDGES, "LD0 dst",
    ),
    Mutant(
        "R13", "a prologue reaches all of LV2", "hw/control/loader.py",
        "self.loads.cmd.payload.dst_limit.eq(self.slots.dst.data.limit)",
        "self.loads.cmd.payload.dst_limit.eq(self.params.lv2_bytes)",
        "P1", _EDGES, "prologues",
    ),
    Mutant(
        "R14", "a store may go to code and weights", "hw/contract/isa.py",
        "Op.ST2: STORE_SEGMENTS", "Op.ST2: DRAM_SEGMENTS",
        "P1", _EDGES, "segments",
    ),
    Mutant(
        "R15", "a source may be any segment", "hw/control/decode.py",
        'for name, allowed in (("src_seg", SOURCE_SEGMENTS), ("dst_seg", DESTINATION_SEGMENTS))',
        'for name, allowed in (("dst_seg", DESTINATION_SEGMENTS),)',
        "P1", _EDGES, "segments",
    ),
    Mutant(
        "R16", "an instruction may name semaphores that are not there", "hw/control/decode.py",
        "flaws.append(bits[self.usable :].any())", "flaws.append(bits[len(bits) :].any())",
        "P1", _SECOND, "masks",
    ),
    Mutant(
        "R17", "a limit of few cycles is none", "hw/control/executor.py",
        "(ended.job.cycle_limit != 0)", "(ended.job.cycle_limit > 16)",
        "L", _EDGES, "cycles",
    ),
    Mutant(
        "R18", "a prologue does not wait for its window", "hw/control/loader.py",
        "with m.Elif(~self.hold & ((window_after == 0) | in_use[31])):", "with m.Elif(~self.hold):",
        "P2", ("neighbours",), "window_after",
    ),
    Mutant(
        "R19", "a wait for an event is always over", "hw/control/events.py",
        "port.wait.request & waits & ~(read.data - port.wait.value)[31]", "port.wait.request & waits",
        "P2", ("neighbours",), "events",
    ),
    Mutant(
        "R20", "a completion that could not be written counts", "hw/control/retire.py",
        "bad.eq(bad | self.bus.rsp.payload.error)", "bad.eq(bad)",
        "P2", ("neighbours", "faults"), "error of the completion ring",
    ),
)  # fmt: skip
