"""Blocks of weights as a stream to LV0: every block is read where it lies, once, and no signal is missing."""

import random

import pytest

from compiler.emission.kernels.block_stream import BlockStream
from compiler.emission.program import JobProgram, Ring, Sem
from compiler.emission.program.schedule import schedule
from hw.contract.isa import Lv0Space, Op
from hw.contract.params import preset


@pytest.mark.parametrize("int4", [False, True])
@pytest.mark.parametrize("name", ["tiny", "base", "cluster64"])
@pytest.mark.parametrize("seed", range(12))
def test_any_pieces_read_all_blocks_in_order(name, seed, int4):
    """Buffers of any number of blocks, taken in pieces of any length, as tiles of any depth make them."""
    print("seed", seed)
    rng, params = random.Random(seed), preset(name)
    block, rows = params.rows * params.out_channels // (2 if int4 else 1), params.rows
    job = JobProgram(params, 0)
    source = Ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, 0, 1 << 20, 2)
    stream = BlockStream(job, source, params, int4=int4)
    wanted: list[tuple[int, int]] = []  # buffer and block of it, as they are taken
    spans: list[tuple[int, int]] = []  # LV0 words of each MAC
    for number in range(rng.randint(1, 5)):
        held = source.fill(number)
        source.filled_by(held, [job.emit(Op.LD1, {"len": 1})])
        depth = rng.choice((1, 7, 16, 32, 36, 64, 72, 150))
        tiles = rng.randint(1, 5)
        stream.begin(held, depth * tiles)
        for tile in range(tiles):
            done = 0
            while done < depth:
                fills, word, count = stream.take(depth - done)
                assert 1 <= count <= depth - done
                mac = job.emit(Op.MAC, {"wgt": word, "n0": count})
                stream.read_by(fills, mac)
                spans.append((word, count))
                wanted += [(held.address, tile * depth + done + i) for i in range(count)]
                done += count
    assert _read(job, params) == [address + number * block for address, number in wanted]
    capacity = params.lv0_wgt_bytes // rows
    assert all(word + count * rows <= capacity for word, count in spans)
    schedule(job.tasks, params)  # semaphores balance, and nothing waits in a circle


def _read(job: JobProgram, params) -> list[int]:
    """Return the LV1 address of each block that MAC instructions read, one after the other, in emission order."""
    memory, read = dict[int, int](), list[int]()
    for task in job.tasks:
        if task.op is Op.LD0:
            fields = task.numbers
            size = fields["len"] * fields["n0"] * fields["n1"] * fields["n2"]
            words = 2 if fields["space"] == Lv0Space.INT4 else 1
            for at in range(0, size, params.lv1_word):  # a word of LV1 is one of each PE's LV0, or two
                memory[(fields["dst"] + at) // params.lv1_word * words] = fields["src"] + at
        elif task.op is Op.MAC:
            for i in range(task.numbers["n0"]):
                read.append(memory[task.numbers["wgt"] + i * params.rows])
    return read


def test_a_tile_of_more_than_half_of_lv0_takes_fewer_instructions_than_in_parts_of_its_own():
    """36 blocks, as 288 channels have: eight tiles in 9 loads, not 16, and fewer than two MAC instructions each."""
    params = preset("base")
    job, source = JobProgram(params, 0), Ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, 0, 1 << 20, 2)
    stream, held = BlockStream(job, source, params), source.fill(0)
    source.filled_by(held, [job.emit(Op.LD1, {"len": 1})])
    stream.begin(held, 8 * 36)
    for _ in range(8):
        done = 0
        while done < 36:
            fills, word, count = stream.take(36 - done)
            stream.read_by(fills, job.emit(Op.MAC, {"wgt": word, "n0": count}))
            done += count
    ops = [task.op for task in job.tasks]
    assert ops.count(Op.LD0) == 9 and 8 < ops.count(Op.MAC) < 16


def test_loads_of_int4_are_equal_and_no_instruction_reads_beyond_them():
    """105 blocks in loads of 27 and 26, which leave a gap behind them: an instruction ends where its load does."""
    params = preset("base")
    job, source = JobProgram(params, 0), Ring(Sem.WEIGHT1_FULL, Sem.WEIGHT1_FREE, 0, 1 << 20, 2)
    stream, held = BlockStream(job, source, params, int4=True), source.fill(0)
    source.filled_by(held, [job.emit(Op.LD1, {"len": 1})])
    stream.begin(held, 5 * 21)
    counts = []
    for _ in range(5):
        done = 0
        while done < 21:
            fills, word, count = stream.take(21 - done)
            stream.read_by(fills, job.emit(Op.MAC, {"wgt": word, "n0": count}))
            counts, done = [*counts, count], done + count
    packed = params.rows * params.out_channels // 2
    loads = [task.numbers["len"] * task.numbers["n0"] for task in job.tasks if task.op is Op.LD0]
    assert [size / packed for size in loads] == [27, 26, 26, 26]
    assert counts == [21, 6, 15, 11, 10, 16, 5, 21]
    assert _read(job, params) == [held.address + number * packed for number in range(105)]
