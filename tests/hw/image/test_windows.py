"""An image that says that its weights stay in LV2 keeps its word, or is refused."""

import pytest

import caesura
from examples.digits import MODEL
from hw.contract.isa import INSN_BYTES, Insn, Op
from hw.contract.params import preset
from hw.image.image import Image, ImageError, Relocation
from hw.image.windows import promise_problems, window_weights

TINY = preset("tiny")


@pytest.fixture(scope="module")
def compiled():
    return caesura.compile(MODEL, TINY).to_bytes()


@pytest.fixture
def image(compiled):
    return Image.from_bytes(compiled)


def edit(image: Image, pc: int, **fields: int) -> None:
    at = slice(pc * INSN_BYTES, (pc + 1) * INSN_BYTES)
    insn, code = Insn.decode(image.code[at]), bytearray(image.code)
    code[at] = Insn(insn.op, insn.fields | fields).encode()
    image.code = bytes(code)


def first(image: Image, op: Op) -> int:
    return next(pc for pc in range(len(image.code) // INSN_BYTES) if image.code[pc * INSN_BYTES] == op)


def with_prologue(image: Image):
    """The jobs that a prologue loads for."""
    return [job for job in image.meta.jobs if job.prologue_pc is not None]


def test_digests_are_those_of_the_weights_in_the_window(image):
    found = window_weights(image)
    assert len(found) == len(with_prologue(image)) >= 3
    assert len({one.digest for one in found.values()}) == len(found)
    pc = with_prologue(image)[-1].prologue_pc
    changed = Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])["src"]
    image.weights = bytes(byte ^ (number == changed) for number, byte in enumerate(image.weights))
    other = window_weights(image)
    assert sum(other[job].digest != one.digest for job, one in found.items()) == 1
    assert all((other[job].offset, other[job].end) == (one.offset, one.end) for job, one in found.items())


def test_without_the_promise_nothing_stays(image):
    image.meta.weights_only = (0, 0)
    with_prologue(image)[0].window = (0, 0)
    image.validate()
    assert window_weights(image) == {}


def _store_into_weights(image):
    edit(image, first(image, Op.ST1), dst=image.meta.weights_only[0] + 1)


def _store_beside_and_into(image):
    low, _ = image.meta.weights_only
    edit(image, first(image, Op.ST1), dst=low - 4096, n2=2, dst_s2=4096, n1=1, n0=1, len=1)


def _store_behind_and_into(image):
    low, size = image.meta.weights_only
    edit(image, first(image, Op.ST1), dst=low + size, n2=2, dst_s2=-size, n1=1, n0=1, len=1)


def _load_into_weights(image):
    edit(image, first(image, Op.LD2), dst=sum(image.meta.weights_only) - 1)


def _load_less(image):
    pc = with_prologue(image)[0].prologue_pc
    edit(image, pc, len=1, hi=1)


def _load_with_holes(image):
    pc = with_prologue(image)[0].prologue_pc
    edit(image, pc, lo=1)


def _load_from_elsewhere(image):
    edit(image, with_prologue(image)[0].prologue_pc, src_seg=2)


def _load_beyond_the_weights(image):
    edit(image, with_prologue(image)[-1].prologue_pc, src=len(image.weights) - 1)


def _load_from_before_the_weights(image):
    _, size = with_prologue(image)[0].window
    fields = {"src": 0, "src_s0": -1, "dst_s0": 1, "n2": 1, "n1": 1, "n0": size, "hi0": size, "len": 1, "hi": 1}
    edit(image, with_prologue(image)[0].prologue_pc, **fields)


def _load_far_more(image):
    fields = {"n2": 1, "n1": 1, "n0": 65535, "hi0": 65535, "len": 1, "hi": 1, "src_s0": 0, "dst_s0": 1}
    edit(image, with_prologue(image)[0].prologue_pc, **fields)


def _load_and_more(image):
    """No END behind the loads."""
    pc = with_prologue(image)[0].prologue_pc
    while image.code[pc * INSN_BYTES] != Op.END:
        pc += 1
    raw = Insn(Op.ST2, {"src_seg": 6, "dst_seg": 3, "len": 1}).encode()
    image.code = image.code[: pc * INSN_BYTES] + raw + image.code[(pc + 1) * INSN_BYTES :]


def _load_out_of_order(image):
    pc = with_prologue(image)[0].prologue_pc
    edit(image, pc, dst=Insn.decode(image.code[pc * INSN_BYTES : (pc + 1) * INSN_BYTES])["dst"] + 1)


def _share_windows(image):
    one, other = with_prologue(image)[:2]
    other.window = one.window[0] + 1, other.window[1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_store_into_weights, "PC .* writes there, which is in no prologue"),
        (_store_beside_and_into, "PC .* writes there, which is in no prologue"),
        (_store_behind_and_into, "PC .* writes there, which is in no prologue"),
        (_load_into_weights, "PC .* writes there, which is in no prologue"),
        (_load_less, "does not load its window"),
        (_load_with_holes, "loads something else than weights"),
        (_load_from_elsewhere, "loads something else than weights"),
        (_load_beyond_the_weights, "loads weights that the image does not have"),
        (_load_out_of_order, "does not load its window in order"),
        (_load_from_before_the_weights, "does not load its window in order"),
        (_load_far_more, "loads more than its window"),
        (_load_and_more, "does not load its window of .* and nothing else"),
        (_share_windows, "not to itself"),
        (lambda image: setattr(image.meta, "weights_only", (0, 1 << 40)), "leave segment 7"),
        (lambda image: setattr(image.meta, "weights_only", (-8, 16)), "leave segment 7"),
        (
            lambda image: image.meta.relocations.append(Relocation(first(image, Op.ST1), "dst", "segment7")),
            "cannot be known",
        ),
    ],
)  # fmt: skip
def test_a_broken_promise_is_refused(image, change, told):
    change(image)
    with pytest.raises(ImageError, match=f"weights_only.*{told}"):
        image.validate("x")


def test_windows_that_bodies_may_write_to_are_not_kept(image):
    low, size = image.meta.weights_only
    before, last = window_weights(image), max(job.window for job in with_prologue(image))
    image.meta.weights_only = low, last[0] - low
    image.validate("x")
    assert window_weights(image) == {job: one for job, one in before.items() if one.offset != last[0]}
    image.meta.weights_only = last[0], low + size - last[0]
    image.validate("x")
    assert [one.offset for one in window_weights(image).values()] == [last[0]]


def test_windows_beside_tensors_are_refused(image):
    image.meta.overlaid = False
    assert "begin at the same byte" in next(promise_problems(image))
