"""The container of range kernels: every length comes out as it went in, damage and nonsense are refused by name."""

import hashlib
import json
import random
import struct
import tracemalloc
import zlib

import pytest

from hw.contract.params import preset
from hw.image.image import ImageError
from hw.image.kernel_attributes import KernelAttributes
from hw.image.range_image import RangeImage, Stretch
from tests.support.images import SIZE, copy_image

TINY = preset("tiny")
HEADER = struct.Struct("<4sHHQQQ32s")


def image_for(length):
    """A copy of ``length`` bytes in place of SIZE."""
    body = f"LD2 src_seg=2 dst_seg=6 len={length} hi={length} hi1=1 hi0=1 signal=0\n"
    body += f"ST2 src_seg=6 dst_seg=3 len={length} hi={length} hi1=1 hi0=1 wait=0\nEND\n"
    image = copy_image(TINY, body)
    for tensor in image.meta.tensors:
        tensor.shape = [1, 1, length]
    for port in (*image.meta.inputs, *image.meta.outputs):
        port.shape = [1, 1, length] if port.name == "in" else [1, length]
    image.weights = bytes(range(length % 3))
    image.meta.segment_sizes[1] = length % 3
    image.host_models = [bytes([length])]
    image.to_bytes()  # notes the sizes of host models
    return image


def made():
    """Two stretches: 5 to 9 in steps of 2, 11 to 20."""
    lengths = (range(5, 10, 2), range(11, 21))
    stretches = tuple(Stretch.of({length: image_for(length) for length in part}) for part in lengths)
    return RangeImage(KernelAttributes.of({"head_size": 80}, "length", "5..20"), stretches)


RAW = made().to_bytes()


def test_every_length_comes_out_again():
    found = RangeImage.from_bytes(RAW)
    assert found.lengths == [5, 7, 9, *range(11, 21)] and found.attributes == made().attributes
    for length in found.lengths:
        assert length in found
        assert found.image(length).to_bytes() == image_for(length).to_bytes()
    assert 6 not in found and 21 not in found
    with pytest.raises(KeyError, match="no image for length 6"):
        found.image(6)
    assert found.to_bytes() == RAW


def test_relocation_leaves_the_kernel_as_it_is():
    found = RangeImage.from_bytes(RAW)
    found.image(20).meta.tensors[0].shape[2] = 1
    found.image(12).meta.jobs.clear()
    assert found.image(20).to_bytes() == image_for(20).to_bytes()


def test_damage_is_noticed(tmp_path):
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(200):
        raw = bytearray(RAW)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        with pytest.raises(ImageError, match="here"):
            RangeImage.from_bytes(bytes(raw), "here")
        with pytest.raises(ImageError):
            RangeImage.from_bytes(RAW[: rng.randrange(len(RAW))])
    with pytest.raises(ImageError, match="cannot be read"):
        RangeImage.load(tmp_path / "none.crng")


def repacked(change):
    """RAW with ``change`` applied to the index, and a checksum that is right."""
    _, _, _, packed, _, _, _ = HEADER.unpack_from(RAW)
    body = RAW[HEADER.size :]
    index = json.loads(zlib.decompress(body[:packed]))
    change(index)
    raw = json.dumps(index).encode()
    index_bytes, arrays = zlib.compress(raw), body[packed:]
    digest = hashlib.sha256(index_bytes + arrays).digest()
    return HEADER.pack(b"CRNG", 1, 0, len(index_bytes), len(raw), len(arrays), digest) + index_bytes + arrays


NONSENSE = {
    "no stretch": lambda index: index["stretches"].clear(),
    "other attributes": lambda index: index["kernel_attributes"]["class_2"].update(length="5..21"),
    "no attributes": lambda index: index.pop("kernel_attributes"),
    "lengths down": lambda index: index["stretches"].reverse(),
    "step 0": lambda index: index["stretches"][0].update(lengths=[5, 10, 0]),
    "more lengths": lambda index: index["stretches"][1].update(lengths=[11, 20, 1]),
    "short column": lambda index: index["stretches"][1]["columns"][0][1].pop(),
    "short curve": lambda index: index["stretches"][0]["curves"][0][1].pop(),
    "no such array": lambda index: index["stretches"][0]["words"].__setitem__(0, [0, 1, 2, 3, 4, 99]),
    "arrays swapped": lambda index: index["stretches"][0]["words"][0].reverse(),
    "huge array": lambda index: index["arrays"][0].__setitem__(1, 1 << 40),
    "ten million lengths": lambda index: index["stretches"][1].update(lengths=[11, 10_000_011, 1]),
    "lengths beyond numbers": lambda index: index["stretches"][1].update(lengths=[11, 10**30, 1]),
    "arrays that are huge together": lambda index: index["arrays"].extend([[0, 1 << 28]] * 3),
    "an array of endless size": lambda index: index["arrays"][0].__setitem__(1, float("nan")),
    "negative array": lambda index: index["arrays"][0].__setitem__(0, -1),
    "a list": lambda index: index["stretches"].__setitem__(0, []),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_refused(what):
    with pytest.raises(ImageError):
        RangeImage.from_bytes(repacked(NONSENSE[what]))
    assert RangeImage.from_bytes(repacked(lambda index: None)).lengths == made().lengths


def bomb(index, arrays=b"", size=None):
    """A file with this index, compressed, which says that it has ``size`` bytes, and a checksum that is right."""
    packed = zlib.compress(index, 9)
    digest = hashlib.sha256(packed + arrays).digest()
    return HEADER.pack(b"CRNG", 1, 0, len(packed), size or len(index), len(arrays), digest) + packed + arrays


def little(raw, message):
    """It is refused with this message, and within little memory."""
    tracemalloc.start()
    with pytest.raises(ImageError, match=message):
        RangeImage.from_bytes(raw)
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def test_files_that_unpack_to_much_are_refused_before():
    little(bomb(b"{}", size=1 << 29), "an index of 536,870,912 bytes, 268,435,456 at most")
    little(bomb(b" " * (1 << 25), size=1 << 20), "1048577 bytes in place of 1048576")
    little(bomb(b"[" + b"[]," * (12 << 20) + b"[]]"), r"an index of 25,165,826 values, 16,777,216 at most")
    zeros = zlib.compress(bytes(1 << 26), 9)
    index = {"arrays": [[len(zeros), 1 << 24]] * 33, "stretches": [], "kernel_attributes": {}}
    little(bomb(json.dumps(index).encode(), zeros * 33), "2,214,592,512 bytes of arrays, 2,147,483,648 at most")


def test_images_that_are_much_are_refused():
    """One array, named many times: as the weights of as many host models, or as that which changes with the length."""

    packed = HEADER.unpack_from(RAW)[3]
    index = json.loads(zlib.decompress(RAW[HEADER.size :][:packed]))
    for place, message in ((0, "images of"), (1, "words that depend on the length")):
        large = zlib.compress(bytes(1 << 22))
        arrays = [[len(large), 1 << 20], [len(zlib.compress(b"")), 0], [len(zlib.compress(b"")), 3, 0]]
        words = [[0, 1, 2, 1, 2, 1], [1, 0, 2, 1, 2, 1]][place]
        stretch = {**index["stretches"][1], "words": [words] * (1 << 12)}
        raw = json.dumps({**index, "arrays": arrays, "stretches": [stretch]}).encode()
        little(bomb(raw, large + zlib.compress(b"") * 2), message)


def test_a_relocated_image_is_checked():
    """A curve that leads nowhere, or to a size that is impossible."""

    def nowhere(index):
        index["stretches"][1]["curves"][0][0] = ["nothing", 3]

    def impossible(index):
        index["stretches"][1]["meta"]["segment_sizes"][2] = SIZE // 8

    for change in (nowhere, impossible):
        with pytest.raises(ImageError, match="length 20"):
            RangeImage.from_bytes(repacked(change)).image(20)


def test_other_versions():
    for at, message in ((0, "not a range kernel"), (4, "format version"), (6, "format version")):
        raw = bytearray(RAW)
        raw[at] += 1
        with pytest.raises(ImageError, match=message):
            RangeImage.from_bytes(bytes(raw))


def test_lengths_must_be_evenly_spaced():
    with pytest.raises(ValueError, match="evenly"):
        Stretch.of({length: image_for(length) for length in (4, 5, 7)})
