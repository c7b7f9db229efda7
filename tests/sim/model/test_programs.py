"""Code segments on the fast model: each job has a limit of its own, and code changes between jobs."""

import numpy as np
import pytest

from hw.contract.bus import Bus, HostCosts
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.job import Fault
from hw.contract.params import preset
from sim.cost.exact import program as program_module
from sim.cost.exact.program import PIECE, Programs, ProgramTable
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from tests.hw.soc_bench import CODE, END, SocBench, copy

TINY = preset("tiny")


def _model() -> Bus:
    return ModelBus(TINY, costs=HostCosts.free(), data=False)


def _rtl() -> Bus:
    return open_bus(TINY, costs=HostCosts.free())


def test_a_fetch_beyond_the_limit_of_its_job_faults_as_on_the_rtl():
    """Two jobs at one base: what the second may reach is decoded when the first runs into its limit."""
    entries = []
    for bus in (_rtl(), _model()):
        with bus:
            bench = SocBench(TINY, bus=bus)
            bench.setup()
            body = [copy(Op.LD2, len=64), copy(Op.LD2, len=64), END]
            for bound in (3, 6):
                bench.job(body, limit0=bound * INSN_BYTES)
            bench.job(body, limit0=9 * INSN_BYTES - 1)  # its END is there but for a byte
            bench.ring()
            bench.wait(3)
            entries.append([bench.completion(index) for index in range(3)])
    rtl, model = ([(e["status"], e["unit"], e["pc"], e["address"]) for e in each] for each in entries)
    assert model == rtl
    assert [status for status, *_ in rtl] == [0, 0, Fault.LIMIT]


@pytest.mark.parametrize("open_one", [_model, _rtl])
def test_code_written_between_jobs_is_what_runs(open_one):
    """Within what earlier jobs could reach, and behind it."""
    with open_one() as bus:
        bench = SocBench(TINY, bus=bus)
        bench.setup()
        bench.job([copy(Op.LD2, len=64), END], limit0=2 * INSN_BYTES)
        bench.ring()
        bench.wait(1)
        bus.write_mem(bench.base(0) + CODE, copy(Op.LD2, len=32).encode())
        bench.code[0] = 0
        bench.job([copy(Op.LD2, len=32), copy(Op.LD2, len=32), END], limit0=3 * INSN_BYTES)
        bench.ring()
        bench.wait(2)
        bench.job([copy(Op.LD2, len=96), END], limit0=5 * INSN_BYTES)
        bench.ring()
        bench.wait(3)
        assert [bench.completion(job)["ld2_bytes"] for job in range(3)] == [64, 64, 96]
        assert [bench.completion(job)["status"] for job in range(3)] == [0, 0, 0]


def _decoded(monkeypatch) -> list[int]:
    """The instructions of each piece that is decoded from now on."""
    sizes = []

    class Counted(program_module.DecodedCode):
        def __init__(self, code, params):
            super().__init__(code, params)
            sizes.append(len(self))

    monkeypatch.setattr(program_module, "DecodedCode", Counted)
    program_module.forget_decoded()
    return sizes


def test_jobs_with_limits_of_their_own_decode_an_instruction_once(monkeypatch):
    sizes = _decoded(monkeypatch)
    count = 3 * PIECE
    dram = np.frombuffer(copy(Op.LD2, len=64).encode() * count, np.uint8).copy()
    programs = Programs(TINY, dram)
    for job in range(50):
        end = (job + 1) * count // 50
        programs.at(0, end * INSN_BYTES).decode(end - count // 50, end)
    assert sum(sizes) == PIECE  # all pieces are alike
    again = Programs(TINY, dram.copy())
    again.at(0, len(dram)).decode(0, count)
    assert sum(sizes) == PIECE
    dram[5 * INSN_BYTES :][:INSN_BYTES] = np.frombuffer(END.encode(), np.uint8)
    programs.changed(5 * INSN_BYTES, INSN_BYTES)
    assert programs.at(0, len(dram)).decode(0, count) == count
    assert sum(sizes) == 2 * PIECE


def test_what_no_job_executes_is_not_decoded(monkeypatch):
    """A job may claim all of the memory as its code."""
    sizes = _decoded(monkeypatch)
    dram = np.zeros(64 * PIECE * INSN_BYTES, np.uint8)
    dram[: 2 * INSN_BYTES] = np.frombuffer(copy(Op.LD2, len=64).encode() + END.encode(), np.uint8)
    table = Programs(TINY, dram).at(0, 1 << 32)
    assert table.decode(0, 2) == PIECE
    assert sizes == [PIECE]
    assert len(table) == 64 * PIECE


def test_instructions_can_be_asked_for_in_any_order():
    dram = np.frombuffer(b"".join(copy(Op.LD2, len=1 + pc).encode() for pc in range(PIECE + 10)), np.uint8)
    table = ProgramTable(dram, TINY)
    for pc in (PIECE + 3, 5, PIECE - 1, PIECE, 2000):
        assert table.insn(pc)["len"] == pc + 1
    table.decode(0, len(table))
    rows = np.array([PIECE + 9, 7, PIECE - 1])
    assert (table.column(Op.LD2, "len", rows) == rows + 1).all()


def test_what_was_told_of_an_instruction_is_forgotten_with_it():
    memory = np.zeros(2 * INSN_BYTES, np.uint8)
    program = ProgramTable(memory, TINY)
    for length in (64, 640):
        insn = Insn(Op.LD1, {"src_seg": 6, "len": length, "hi": length, "hi1": 1, "hi0": 1})
        memory[:INSN_BYTES] = np.frombuffer(insn.encode(), np.uint8)
        program.forget(0)
        program.decode(0, 1)
        assert program.insn(0)["len"] == length
        assert program.cycles(0) == length // TINY.lv1_word
