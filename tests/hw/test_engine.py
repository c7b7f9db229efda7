"""Whole jobs with every unit, written by hand, on the real engine against the functional model."""

import numpy as np
import pytest

from hw.contract.assembly import assemble
from hw.contract.isa import VEC_HEADER, Insn, MacMode, Op
from hw.contract.job import Fault, JobFlag
from hw.contract.params import preset
from hw.contract.regs import EngineState
from sim.backends import DEFAULT_BACKEND
from sim.functional.machine import Machine
from tests.hw.soc_bench import CODE, DATA, DATA_BYTES, LV2_BYTES, SocBench

PARAMS = preset("tiny")
WEIGHTS, BLOCK, POOL_BLOCK, TABLE, INPUT_BYTES = 512, 768, 896, 1024, 1280  #: alike in DRAM, LV2 and LV1
RESULT, RESULT_BYTES, STORED = 2048, 232, 0x1003  #: results in LV1 and LV2, and where they go in DRAM

PROLOGUE = f"""
LD2 src_seg=2 dst_seg=6 src={WEIGHTS} dst={WEIGHTS} len=768 hi=768 hi1=1 hi0=1
END
"""

# Activations: 2 runs to all PEs, the second one padding; then words dealt out to the PEs in turn. Weights: a run for
# each PE, then words dealt out. Two MACs make one sum; three VECs requantise it, add to it, and take maxima.
BODY = f"""
LD2 src_seg=2 dst_seg=6 len=512 hi=512 hi1=1 hi0=1 signal=0
LD1 wait=0 src_seg=6 len=256 n0=5 src_s0=256 dst_s0=256 hi=256 hi1=1 hi0=5 signal=1,6
LD0 wait=1 space=ACT view=MULTICAST pe_mask=0,1 len=64 n0=2 src_s0=64 dst_s0=80 hi=64 hi1=1 hi0=1 fill={{x_zp}}
LD0 space=ACT view=INTERLEAVED src=128 dst=512 len=256 hi=256 hi1=1 hi0=1
LD0 space=WGT view=MULTICAST pe_mask=0 src={WEIGHTS} len=64 hi=64 hi1=1 hi0=1
LD0 space=WGT view=MULTICAST pe_mask=1 src={WEIGHTS + 64} len=64 hi=64 hi1=1 hi0=1 signal=2
LD0 space=WGT view=INTERLEAVED src={WEIGHTS + 128} dst=128 len=128 hi=128 hi1=1 hi0=1 signal=3
MAC wait=2 mode={{mode}} x_signed={{signed}} w_signed=1 x_zp={{x_zp}} act=0 wgt=0 acc=3 \
n1=2 n0=2 k1_s=20 k0_s=1 p1=2 p0=6 p1_s=4 p0_s=2 acc_s=6
MAC wait=3 mode={{mode}} accumulate=1 w_cols={{w_cols}} x_signed={{signed}} w_signed=1 x_zp={{x_zp}} \
act=64 wgt=16 acc=3 n0=4 k0_s=5 p1=2 p0=6 p1_s=1 p0_s=2 acc_s=6 signal=4
CANCEL point=1
VEC wait=4,6 src_acc=1 per_channel=1 table=1 a=3 a_s1=1 n1=12 d={RESULT} d_s1=8 p={BLOCK} t={TABLE}
VEC op=LIN b_en=1 a_signed=1 a={RESULT} a_s1=8 b=40 b_s1=8 n1=12 d={RESULT + 96} d_s1=8 p={BLOCK}
VEC op=MAX k1=2 k0=2 a={RESULT} a_s1=16 a_k1=8 a_k0=16 n1=5 d={RESULT + 192} d_s1=8 p={POOL_BLOCK} signal=5
ST1 wait=5 src={RESULT} dst_seg=6 dst={RESULT} len={RESULT_BYTES} hi={RESULT_BYTES} hi1=1 hi0=1 signal=7
ST2 wait=7 src_seg=6 dst_seg=2 src={RESULT} dst={STORED} len={RESULT_BYTES} hi={RESULT_BYTES} hi1=1 hi0=1
END
"""


@pytest.fixture(scope="module", params=[DEFAULT_BACKEND, pytest.param("pysim", marks=pytest.mark.slow)])
def soc(request):
    bench = SocBench(PARAMS, request.param)
    bench.setup()
    yield bench
    bench.bus.close()


@pytest.fixture(scope="module")
def machine(soc):
    """Runs the same jobs as ``soc``, so that on-chip memories keep equal contents."""
    return Machine(PARAMS)


def parameter_block(rng: np.random.Generator, bias: int, scale: float) -> bytes:
    """Random per channel, around the given size."""
    scalars = {"zp_a": 7, "zp_b": 128, "ma": 300, "mb": -251, "zp_y": -3, "lo": -120, "hi": 125}
    raw = b"".join(scalars[name].to_bytes(size, "little", signed=True) for name, size, _ in VEC_HEADER)
    entries = np.empty(PARAMS.out_channels, [("bias", "<i4"), ("scale", "<f4")])
    entries["bias"] = rng.integers(-bias, bias + 1, len(entries))
    entries["scale"] = scale * rng.uniform(0.5, 2, len(entries))
    return raw.ljust(PARAMS.vec_header_bytes, b"\0") + entries.tobytes()


def program(text: str, **values: int | str) -> list[Insn]:
    return assemble(text.format(**values).strip())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mode", MacMode)
def test_job_through_every_unit_equals_the_model(soc, machine, mode, seed):
    rng = np.random.default_rng(seed)
    content = bytearray(rng.bytes(INPUT_BYTES).ljust(DATA_BYTES, b"\xee"))
    for at, block in ((BLOCK, parameter_block(rng, 3000, 2**-10)), (POOL_BLOCK, parameter_block(rng, 20, 0.4))):
        content[at : at + len(block)] = block
    soc.bus.write_mem(soc.data(), bytes(content))

    body = program(BODY, mode=mode.name, signed=seed, w_cols=1 - seed, x_zp=int(rng.integers(0, 256)))
    first = soc.code[0]
    index = soc.job(body, prologue=program(PROLOGUE))
    soc.ring()
    soc.wait(index + 1)
    completion = soc.completion(index)
    assert completion["status"] == Fault.NONE, completion
    for unit in ("prologue", "ld2", "ld1", "ld0", "st1", "st2"):
        assert completion[f"{unit}_bytes"] > 0
    assert completion["mac_active"] == 12 * (4 + 4)
    assert completion["vec_active"] == 12 + 12 + 5 * 4
    assert completion["instructions"] == len(body) - 1 - sum(insn.op.name == "CANCEL" for insn in body)

    machine.dram[: DATA + DATA_BYTES] = np.frombuffer(soc.bus.read_mem(0, DATA + DATA_BYTES), np.uint8)
    machine.dram[DATA : DATA + DATA_BYTES] = np.frombuffer(bytes(content), np.uint8)
    segments = [(0, 0)] * 8
    segments[0], segments[2], segments[6] = (CODE, DATA - CODE), (DATA, DATA_BYTES), (0, LV2_BYTES)
    machine.run_job(segments, first, first + len(body))
    got = np.frombuffer(soc.bus.read_mem(soc.data(), DATA_BYTES), np.uint8)
    np.testing.assert_array_equal(got, machine.dram[DATA : DATA + DATA_BYTES])
    for start, size in ((0, 96), (96, 96), (192, 40)):
        values = set(got[STORED + start :][:size])
        assert len(values) > 12, f"{len(values)} values at {start} are too few to show a difference"


def inputs(seed: int) -> tuple[bytes, list[Insn]]:
    """DRAM content and body of a job through every unit."""
    rng = np.random.default_rng(seed)
    content = bytearray(rng.bytes(INPUT_BYTES).ljust(DATA_BYTES, b"\xee"))
    for at, block in ((BLOCK, parameter_block(rng, 3000, 2**-10)), (POOL_BLOCK, parameter_block(rng, 20, 0.4))):
        content[at : at + len(block)] = block
    return bytes(content), program(BODY, mode=MacMode.DENSE.name, signed=1, w_cols=0, x_zp=100)


def poll(soc: SocBench, state: EngineState, limit: int = 200) -> int:
    """Run until the engine is in ``state``; returns STATUS."""
    for _ in range(limit):
        status = soc.read("STATUS")
        if status & 15 == state:
            return status
        soc.bus.advance(10)
    raise AssertionError(f"{EngineState(status & 15).name}, not {state.name}")


def empty(soc: SocBench) -> None:
    """Reset; rings and interrupts stay as they are, so that enabling is enough."""
    soc.write("CONTROL", 2)
    poll(soc, EngineState.DISABLED)
    soc.jobs[0] = soc.code[0] = 0
    soc.write("CONTROL", 1)


@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_a_job_cut_behind_every_instruction_equals_an_undisturbed_one(soc, step):
    """Behind every ``step``-th. Through a reset: the rest of the job comes back with RESUME, and what is in LV1, LV0
    and the accumulators has survived. Idle loads in front give the pause time to come before the point."""
    content, body = inputs(5)
    idle = program("LD1 src_seg=6 dst=8192 len=256 n0=2 dst_s0=256 hi=256 hi1=1 hi0=2") * 8
    body = [*idle, *(insn for insn in body if insn.op != Op.CANCEL)]

    def start(body: list[Insn], **fields: int) -> None:
        soc.bus.write_mem(soc.data(), content)
        empty(soc)
        soc.job(body, prologue=program(PROLOGUE), **fields)
        soc.ring()

    def result() -> bytes:
        soc.wait(1)
        assert soc.completion(0)["status"] == Fault.NONE
        return soc.bus.read_mem(soc.data() + STORED, RESULT_BYTES)

    def left(executed: list[Insn], semaphore: int) -> int:
        return sum((insn["signal"] >> semaphore & 1) - (insn["wait"] >> semaphore & 1) for insn in executed)

    start(body)
    expected = result()
    for number in range(len(idle) + 1, len(body), step):
        start([*body[:number], Insn(Op.CANCEL, {"point": number}), *body[number:]])
        poll(soc, EngineState.RUNNING)
        soc.write("CONTROL", 5)
        assert poll(soc, EngineState.HALTED) >> 5 & 1, "halted inside the body"
        assert (soc.read("HALT_POINT"), soc.read("HALT_PC")) == (number, number + 1)
        counts = {f"sem{i}": soc.read("SEM", 0, i) for i in range(PARAMS.semaphores)}
        assert counts == {f"sem{i}": left(body[:number], i) for i in range(PARAMS.semaphores)}
        empty(soc)
        soc.job([], body_pc=number + 1, flags=int(JobFlag.RESUME), **counts)
        soc.ring()
        assert result() == expected, f"cut behind instruction {number - 1}: {body[number - 1]}"


def test_accumulators_dumped_raw_and_restored_are_the_same(soc):
    """DRAM → LV1 → accumulators (LD0, space ACC) → LV1 (RAW) → DRAM, all rows; and rows in another order."""
    size = 4 * PARAMS.out_channels * PARAMS.lv0_acc_rows
    row, lanes = 4 * PARAMS.out_channels, PARAMS.vec_lanes
    content = np.random.default_rng(8).bytes(size)
    out, rows = 4096, PARAMS.lv0_acc_rows
    body = program(
        f"""
LD2 src_seg=2 dst_seg=6 len={size} hi={size} hi1=1 hi0=1 signal=0
LD1 wait=0 src_seg=6 len={size} hi={size} hi1=1 hi0=1 signal=1
LD0 wait=1 space=ACC len={row} n0={rows} src_s0={row} dst={size - row} dst_s0={-row} hi={row} hi1=1 hi0={rows} signal=2
VEC wait=2 op=RAW src_acc=1 n2=4 n1={rows} n0={PARAMS.vec_groups} a_s1=1 d={out} d_s2={lanes} d_s1={row} \\
d_s0={4 * lanes} signal=3
ST1 wait=3 src={out} dst_seg=6 len={size} hi={size} hi1=1 hi0=1 signal=4
ST2 wait=4 src_seg=6 dst_seg=2 dst={STORED} len={size} hi={size} hi1=1 hi0=1
END
""".replace("\\\n", "")
    )
    soc.bus.write_mem(soc.data(), content)
    empty(soc)
    soc.job(body)
    soc.ring()
    soc.wait(1)
    completion = soc.completion(0)
    assert completion["status"] == Fault.NONE, completion
    assert completion["vec_active"] == 4 * rows * PARAMS.vec_groups, "one vector per cycle, and no parameters"
    found = soc.bus.read_mem(soc.data() + STORED, size)
    assert [found[at : at + row] for at in range(0, size, row)] == [
        content[at : at + row] for at in reversed(range(0, size, row))
    ]
