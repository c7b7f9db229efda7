"""The race checker finds what program order hides, and only that."""

import pytest

from hw.contract.assembly import assemble
from hw.contract.isa import INSN_BYTES, Insn
from hw.contract.params import preset
from sim.functional.machine import Machine
from tests.support.check.races import RaceChecker, RaceError

TINY = preset("tiny")
SEGMENTS = [(0, 4096)] * 6 + [(0, 8192), (8192, 8192)]
RUN = "len=16 hi=16 hi1=1 hi0=1"
LOAD = f"LD1 {RUN} src_seg=6 dst=64"
STORE = f"ST1 {RUN} dst_seg=6 src=64 dst=256"


def _run(text: str) -> None:
    machine = Machine(TINY, observer=RaceChecker(TINY))
    code = b"".join(insn.encode() for insn in assemble(text + "\nEND"))
    assert len(code) % INSN_BYTES == 0 and isinstance(Insn.decode(code[:INSN_BYTES]), Insn)
    machine.run_program(code, 0, SEGMENTS)
    machine.run_program(code, 0, SEGMENTS)


def test_read_of_bytes_that_are_still_being_written():
    with pytest.raises(RaceError, match=r"ST1 at PC 1 reads lv1 \(64, 80\) that LD1 at PC 0 wrote"):
        _run(f"{LOAD}\n{STORE}")


def test_ordered_by_a_semaphore():
    _run(f"{LOAD} signal=3\n{STORE} wait=3")


def test_overwrite_of_bytes_that_are_still_being_read():
    with pytest.raises(RaceError, match=r"LD1 at PC 2 writes lv1 .* that ST1 at PC 1 read"):
        _run(f"{LOAD} signal=3\n{STORE} wait=3\n{LOAD}")
    _run(f"{LOAD} signal=3\n{STORE} wait=3 signal=4\n{LOAD} wait=4")


def test_other_bytes_are_no_race():
    _run(f"{LOAD}\n{STORE.replace('src=64', 'src=80')}")


def test_signals_order_earlier_instructions_of_the_unit_too():
    _run(f"{LOAD}\nLD1 {RUN} src_seg=6 dst=512 signal=1\n{STORE} wait=1")


def test_a_start_does_not_order_the_end_of_the_same_instruction():
    """ST1 waits for the first load only; the second may still run."""
    with pytest.raises(RaceError, match="PC 2"):
        _run(f"LD1 {RUN} src_seg=6 dst=512 signal=1\n{LOAD}\n{STORE} wait=1")


def test_order_passes_through_a_third_unit():
    _run(
        f"{LOAD} signal=0\nLD0 {RUN} src=64 pe_mask=0,1 wait=0 signal=1\n"
        f"MAC wait=1 signal=2\nVEC src_acc=1 d=64 p=1024 wait=2"
    )


def test_vector_unit_does_not_read_its_own_fresh_results():
    program = "VEC a=0 d=64 p=1024{}\nVEC a=64 d=128 p=1024{}"
    with pytest.raises(RaceError, match=r"VEC at PC 1 reads lv1 .* that VEC at PC 0 wrote"):
        _run(program.format("", ""))
    _run(program.format(" signal=0", " wait=0"))


def test_semaphores_have_one_unit_at_each_end():
    with pytest.raises(RaceError, match="semaphore 3 has several units at its wait end"):
        _run(f"{LOAD} signal=3\n{STORE} wait=3\nLD1 {RUN} src_seg=6 dst=512 signal=3\nLD0 {RUN} src=512 wait=3")
