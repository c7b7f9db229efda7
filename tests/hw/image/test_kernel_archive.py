"""Kernel libraries as files: what is written is read, equal weights are there once, and damage is refused by name."""

import contextlib
import hashlib
import random

import pytest

from hw.contract.params import preset
from hw.image import ImageError, KernelArchive, RangeImage, Stretch, all_lengths, attributes_of
from hw.image.kernel_attributes import KernelAttributes
from tests.support.images import copy_image

TINY = preset("tiny")
WEIGHTS = bytes(range(256)) * 16


def kernel(value, weights=WEIGHTS):
    image = copy_image(TINY)
    image.weights = weights
    image.meta.segment_sizes[1] = len(weights)
    image.meta.kernel_attributes = about(value).to_dict()
    return image


def about(value):
    return KernelAttributes.of({"model": "copy"}, "length", value)


def range_kernel(first, last):
    images = {length: kernel(length) for length in range(first, last + 1)}
    return RangeImage(about(f"{first}..{last}"), (Stretch.of(images),))


def library():
    return KernelArchive((kernel(5), range_kernel(2, 9), kernel(40), kernel(41, b"other weights...")))


def test_what_is_written_is_read():
    archive = library()
    found = KernelArchive.from_bytes(archive.to_bytes())
    assert [one.to_bytes() for one in found.kernels] == [one.to_bytes() for one in archive.kernels]
    assert [attributes_of(one) for one in found.kernels] == [about(each) for each in (5, "2..9", 40, 41)]
    assert all_lengths(found.kernels) == [*range(2, 10), 40, 41]
    assert found.kernels[0].weights is found.kernels[2].weights
    assert KernelArchive.from_bytes(KernelArchive(()).to_bytes()).kernels == ()


def test_equal_weights_are_in_the_file_once():
    noise = random.Random(1).randbytes(20_000)
    sizes = [len(KernelArchive(tuple(kernel(n, noise) for n in range(1, count))).to_bytes()) for count in (2, 3, 4)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] < 5_000


def signed(raw):
    """A file whose digest is right whatever its parts are."""
    return raw[:16] + hashlib.sha256(raw[64:]).digest() + raw[48:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:40], "not a kernel library"),
        (lambda raw: b"CIMG" + raw[4:], "not a kernel library"),
        (lambda raw: raw[:4] + b"\2" + raw[5:], "format version 2"),
        (lambda raw: raw[:-1], "checksum mismatch"),
        (lambda raw: raw[:200] + bytes([raw[200] ^ 1]) + raw[201:], "checksum mismatch"),
        (lambda raw: signed(raw[:64] + b"\7" + raw[65:]), "part 0 is of an unknown kind"),
        (lambda raw: signed(raw[:80] + b"\xff" * 8 + raw[88:]), "bytes of weights"),
        (lambda raw: signed(raw[:80] + b"\1" + raw[81:]), "not of the size"),
        (lambda raw: signed(raw[:72] + b"\1" + raw[73:]), "do not fill the file"),
        (lambda raw: signed(raw[:92] + b"\3" + raw[93:]), "names part 3, which holds no weights"),
        (lambda raw: signed(raw[:6] + b"\xff\xff" + raw[8:]), "requires a buffer"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_by_name(tmp_path, damage, message):
    path = tmp_path / "bad.ckl"
    path.write_bytes(damage(library().to_bytes()))
    with pytest.raises(ImageError, match=rf"bad\.ckl.*{message}"):
        KernelArchive.load(path)


def test_two_kernels_for_the_same_are_refused():
    with pytest.raises(ImageError, match="two kernels have the same attributes"):
        KernelArchive.from_bytes(KernelArchive((kernel(5), kernel(5))).to_bytes())
    plain = copy_image(TINY)
    with pytest.raises(ImageError, match="is no kernel"):
        KernelArchive.from_bytes(KernelArchive((plain,)).to_bytes())


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_ends_in_an_error_of_the_file(seed):
    rng = random.Random(seed)
    raw = bytearray(library().to_bytes())
    for _ in range(rng.randint(1, 4)):
        raw[rng.randrange(64, len(raw))] = rng.randrange(256)
    with contextlib.suppress(ImageError):
        KernelArchive.from_bytes(signed(bytes(raw)))
