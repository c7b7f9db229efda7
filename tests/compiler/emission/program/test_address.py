"""Addresses are symbols until a job has its place."""

from compiler.emission.program.address import Anchor, JobAddresses, Symbol
from compiler.emission.program.copies import contiguous
from compiler.emission.program.job import JobProgram
from compiler.emission.program.task import Task
from hw.contract.isa import Op, Segment
from hw.contract.params import preset

TINY = preset("tiny")


def test_a_symbol_counts_from_its_anchor():
    symbol = Symbol(Anchor.STREAM, 24)
    assert symbol + 8 == Symbol(Anchor.STREAM, 32) and str(symbol) == "stream + 24"
    addresses = JobAddresses(window=100, weights=1000, stream=5000)
    assert [addresses.resolve(address) for address in (7, symbol, Symbol(Anchor.WINDOW, 1))] == [7, 5024, 101]


def test_a_task_makes_a_different_instruction_for_each_place_and_stays_the_same():
    (fields,) = contiguous(Symbol(Anchor.WEIGHTS, 16), Symbol(Anchor.WINDOW, 16), 64)
    task = Task(Op.LD2, fields)
    insns = [task.insn(JobAddresses(window, weights)) for window, weights in ((0, 0), (128, 4096))]
    assert [(insn["src"], insn["dst"]) for insn in insns] == [(16, 16), (4112, 144)]
    assert task.fields == fields and task.numbers["src"] == 16


def test_long_runs_of_a_symbol_are_cut_like_others():
    symbolic = contiguous(Symbol(Anchor.STREAM, 0), 64, 100_000)
    plain = contiguous(1000, 64, 100_000)
    addresses = JobAddresses(stream=1000)
    assert [{k: addresses.resolve(v) for k, v in fields.items()} for fields in symbolic] == plain


def test_weights_of_a_job_lie_behind_its_anchors():
    job = JobProgram(TINY, 0, own_loads=True)
    first = job.load_window(job.keep(b"a" * 40), 0, 40)
    again = job.load_window(job.keep(b"a" * 40), 64, 40)
    (streamed,) = job.load_streamed(b"b" * 8, 256)
    fetch = job.tasks[0]
    assert (fetch.fields["src"], fetch.fields["dst"]) == (Symbol(Anchor.WEIGHTS, 0), Symbol(Anchor.WINDOW, 0))
    assert fetch.fields["dst_seg"] == Segment.WINDOWS and [task.op for task in job.tasks].count(Op.LD2) == 2
    assert {task.fields["src"] for task in (*first, *again)} == {Symbol(Anchor.WINDOW, 0)}
    assert streamed.fields["src"] == Symbol(Anchor.STREAM, 0) and len(job.window_data) % TINY.lv1_word == 0
