"""A board at the other end of a simulated serial line, behind the same ``Bus`` as every simulator."""

import binascii
import random

import numpy as np
import pytest

import caesura
from compiler.compile import compile_model
from examples.digits import MODEL, SAMPLES
from examples.digits.evaluate import reference_logits
from hw.board import BoardTop
from hw.contract.bus import Bus, BusError, BusTimeout
from hw.contract.params import KIB, ParamError, preset
from hw.contract.regs import ID_VALUE, global_reg
from hw.contract.serial import FAILED, NUMBERS, SYNC, SerialOp, request_frame, response_fields, response_size
from sw.serial import SerialBus
from tests.support.far_end import TIMEOUT, Lossy, SimulatedLine, simulated_line
from tests.support.networks import network, samples

PARAMS = preset("nano").replace(dram_bytes=256 * KIB)
ID, CYCLE_LO, EVENT = (global_reg(name) for name in ("ID", "CYCLE_LO", "EVENT"))


@pytest.fixture(scope="module")
def opened():
    """The compiled simulator, once for all tests."""
    line = simulated_line(PARAMS, native=True)
    yield line
    line.close()


@pytest.fixture
def line(opened):
    opened.spoil = opened.spoil_back = bytes
    return opened


@pytest.fixture
def bus(line):
    return SerialBus(line, PARAMS)


def digits_are_right(bus: SerialBus, params) -> None:
    images = np.load(SAMPLES)["input"][:3]
    model = caesura.Device(bus).load(compile_model(MODEL, params))
    for image, wanted in zip(images, reference_logits(MODEL, images), strict=True):
        outputs, _ = model.run(image[np.newaxis])
        np.testing.assert_array_equal(outputs["logits"][0], wanted)


def test_digits_are_those_of_onnxruntime(bus):
    digits_are_right(bus, PARAMS)


def test_digits_run_out_of_an_sdram_chip():
    """The preset as it is, with 4 MiB; nothing is done to the chip that it does not allow."""
    line = simulated_line(preset("nano"), native=True, sdram=25.0)
    digits_are_right(SerialBus(line, preset("nano")), preset("nano"))
    assert not line.misused
    line.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kws_dscnn_int8", "ic_resnet8_int8"])
def test_networks_run_out_of_an_sdram_chip(name):
    """What they find is what onnxruntime finds."""
    path, known = network(name), np.load(samples(name))
    line = simulated_line(preset("nano"), native=True, sdram=25.0)
    model = caesura.Device(SerialBus(line, preset("nano"))).load(compile_model(path, preset("nano")))
    outputs, _ = model.run(known["input"][:1])
    np.testing.assert_array_equal(*outputs.values(), known["output_ort_noopt"][:1])
    assert not line.misused
    line.close()


def test_it_is_a_bus(bus):
    assert isinstance(bus, Bus)
    assert bus.read_reg(ID) == ID_VALUE
    bus.write_reg(EVENT, 5)
    assert bus.read_reg(EVENT) == 5
    bus.write_reg(EVENT, 0)


def test_memory_takes_any_bytes_at_any_address(bus):
    rng = random.Random(7)
    known = bytearray(bus.read_mem(0x8000, 200))
    for _ in range(40):
        at, data = rng.randrange(150), rng.randbytes(rng.randint(0, 50))
        bus.write_mem(0x8000 + at, data)
        known[at : at + len(data)] = data
        first = rng.randrange(150)
        size = rng.randint(0, 50)
        assert bus.read_mem(0x8000 + first, size) == known[first : first + size]
    assert bus.read_mem(0x8000, 200) == known


def test_memory_moves_in_blocks(line, bus):
    """A request takes up to 1 KiB with it; the words at both ends are not whole."""
    data, sizes = random.Random(3).randbytes(3 * KIB), []
    line.spoil = lambda raw: sizes.append(len(raw)) or raw
    bus.write_mem(0x9003, data)
    block = len(request_frame(0, 0, 0, bytes(KIB)))
    assert sizes == [17, block, block, len(request_frame(0, 0, 0, bytes(KIB - 8))), 17]
    sizes.clear()
    assert bus.read_mem(0x9003, len(data)) == data
    assert sizes == [17] * 4
    assert bus.read_mem(0x9000, 3) == bus.read_mem(0x9003 + len(data), 3) == bytes(3)


def test_blocks_are_shorter_where_they_do_not_get_through(line, bus):
    """Whatever is longer than 200 bytes is damaged: no more than one block of each length is lost for it."""
    data, sizes = random.Random(4).randbytes(2 * KIB), []

    def short(raw: bytes) -> bytes:
        sizes.append(len(raw))
        return raw if len(raw) <= 200 else raw[:-1] + bytes([raw[-1] ^ 1])

    line.spoil = short
    bus.write_mem(0xA000, data)
    line.spoil = bytes
    assert bus.read_mem(0xA000, len(data)) == data
    assert sizes[:4] == [len(request_frame(0, 0, 0, bytes(8 * words))) for words in (128, 1, 64, 1)]
    assert sum(sizes) < 5 * len(data) / 2


def test_blocks_are_long_again_on_a_line_that_has_become_good(line, bus):
    sizes = []
    line.spoil = lambda raw: sizes.append(len(raw)) or (raw if len(raw) < 20 else raw[:-1])
    bus.write_mem(0xA000, bytes(200))
    assert {*sizes[-6:]} == {17, 25}, "single words, and now and then two"
    sizes.clear()
    line.spoil = lambda raw: sizes.append(len(raw)) or raw
    bus.write_mem(0xA000, bytes(8 * KIB))
    assert len(sizes) < 60 and max(sizes) > 600


class Beside:
    """A line that hands out a few bytes at a time, and what lies in front of them."""

    def __init__(self, line):
        self._line, self.front = line, b""

    def write(self, data):
        return self._line.write(data)

    def read(self, size):
        found, self.front = self.front[:5], self.front[5:]
        return found or self._line.read(min(size, 5))

    def reset_input_buffer(self):
        self._line.reset_input_buffer()

    def close(self): ...


def response_frame(op: int, number: int, words: bytes, status: int = 0) -> bytes:
    raw = bytes([SYNC, op | number % NUMBERS << 4, status]) + words
    return raw + binascii.crc_hqx(raw, 0xFFFF).to_bytes(2, "big")


def test_responses_come_in_pieces_and_those_to_others_are_skipped(line):
    beside = Beside(line)
    bus = SerialBus(beside, PARAMS)
    beside.front = response_frame(SerialOp.READ_REG, bus._number, bytes(8))
    assert bus.read_reg(ID) == ID_VALUE
    beside.front = b"\xa5noise\xa5"
    bus.write_mem(0xA000, bytes(range(256)) * 4)
    assert bus.read_mem(0xA000, KIB) == bytes(range(256)) * 4


def test_a_machine_that_refuses_blocks_gets_words(line):
    """It would be one of another version: what it did not take is not taken for written."""

    class Refuses(Beside):
        def write(self, data):
            op, number = data[1] & 0xF, data[1] >> 4
            if op not in (SerialOp.READ_BLOCK, SerialOp.WRITE_BLOCK):
                return super().write(data)
            words = data[6] + 1 if op == SerialOp.READ_BLOCK else 1
            self.front = response_frame(op, number, bytes(8 * words), FAILED)
            return len(data)

    bus, data = SerialBus(Refuses(line), PARAMS), random.Random(6).randbytes(300)
    bus.write_mem(0xC000, data)
    assert bus.read_mem(0xC000, 300) == data == SerialBus(line, PARAMS).read_mem(0xC000, 300)


def test_what_came_before_a_request_is_no_response_to_it(line, bus):
    """A response that is late has the number of a request sixteen later."""
    line._came = response_frame(SerialOp.READ_REG, bus._number + 1, bytes(8))
    assert bus.read_reg(ID) == ID_VALUE


@pytest.mark.parametrize("damage", ["its first byte lost", "its last byte changed", "its length changed"])
def test_what_lies_in_a_damaged_block_is_not_done(line, bus, damage):
    """A block of memory may hold anything, a request among it."""
    inner = request_frame(SerialOp.WRITE_REG | 0x70, EVENT, 0, (7).to_bytes(8, "little"))
    frame = bytearray(request_frame(SerialOp.WRITE_BLOCK | 0x60, 0xB000, 15, (bytes(10) + inner).ljust(128, b"\xa5")))
    if damage == "its first byte lost":
        del frame[0]
    elif damage == "its last byte changed":
        frame[-1] ^= 1
    else:
        frame[6] = 0
    before = bus.read_mem(0xB000, 128)
    line.write(bytes(frame))
    assert line.read(1) == b""
    assert bus.read_reg(EVENT) == 0
    assert bus.read_mem(0xB000, 128) == before


@pytest.mark.parametrize("way", ["spoil", "spoil_back"])
def test_lost_and_damaged_bytes_change_nothing(line, bus, way):
    lossy = Lossy(1, 60)
    setattr(line, way, lossy)
    data = random.Random(2).randbytes(1200)
    bus.write_mem(0x9000, data)
    assert bus.read_mem(0x9000, len(data)) == data
    assert lossy.struck > 20


def test_what_was_done_is_not_done_again(line, bus):
    """The response to a read of the clock is lost. The second one has the time of the first read."""
    before = bus.cycle
    lost = iter(range(response_size(1) - 2))
    line.spoil_back = lambda data: b"" if next(lost, None) is not None else data
    found = bus.read_reg(CYCLE_LO)
    assert found - before < TIMEOUT < bus.cycle - before


def test_time_passes_by_itself(bus):
    begin = bus.cycle
    bus.advance(5000)
    assert bus.cycle >= begin + 5000
    begin = bus.cycle
    assert not bus.wait_irq(4000)
    assert bus.cycle >= begin + 4000
    with pytest.raises(ValueError, match="not be negative, not -1"):
        bus.advance(-1)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda bus: bus.read_reg(0xFF00), "read of register 0xff00: the SoC answered with an error"),
        (lambda bus: bus.write_reg(ID, 1), "write to register 0x0000: the SoC answered with an error"),
        (lambda bus: bus.read_reg(0x10000), "must be a multiple of 4 below 0x10000"),
        (lambda bus: bus.write_reg(ID, 1 << 32), "a register holds 0 to 0xffffffff, not 0x100000000"),
        (lambda bus: bus.read_mem(256 * KIB - 4, 5), "read of 5 bytes at 0x3fffc leaves the DRAM of 0x40000 bytes"),
        (lambda bus: bus.write_mem(-1, b"a"), "write of 1 bytes at -0x1 leaves the DRAM"),
    ],
)
def test_what_there_is_not_is_refused(bus, access, message):
    with pytest.raises(BusError, match=message):
        access(bus)
    assert bus.read_reg(ID) == ID_VALUE


def test_an_unknown_operation_fails(line, bus):
    line.write(request_frame(0x1F, 0, 0))
    head, status, _ = response_fields(line.read(response_size(1)))
    assert (head, status & FAILED) == (0x1F, FAILED)


def test_nobody_there():
    class Dead(SimulatedLine):
        def __init__(self) -> None: ...

        def write(self, data: bytes) -> int:
            return len(data)

        def read(self, size: int) -> bytes:
            return b""

        def reset_input_buffer(self) -> None: ...

    with pytest.raises(BusTimeout, match="LOOK at 0x0: no answer to 4 requests over the serial line"):
        SerialBus(Dead(), PARAMS)


def test_a_closed_line_is_left_alone(bus, line, monkeypatch):
    closed = []
    monkeypatch.setattr(line, "close", lambda: closed.append(True))
    bus.close()
    bus.close()
    assert closed == [True]
    with pytest.raises(RuntimeError, match="closed"):
        bus.read_reg(ID)


def test_wide_words_have_no_line():
    with pytest.raises(ParamError, match="'base': over a serial line dram_word must be 8, not 16"):
        BoardTop(preset("base"), 16)


def test_noise_that_never_ends_is_told():
    class Noisy:
        def write(self, data: bytes) -> int:
            return len(data)

        def read(self, size: int) -> bytes:
            return bytes([0xA5] * size)

        def reset_input_buffer(self) -> None: ...

        def close(self) -> None: ...

    with pytest.raises(BusTimeout, match=r"\d+ bytes came, but none of its responses: noise, another speed"):
        SerialBus(Noisy(), PARAMS)
