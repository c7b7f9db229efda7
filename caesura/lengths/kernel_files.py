"""Keeps kernels on disk, each an image file of its own, in a folder for the next time."""

import hashlib
from pathlib import Path

from hw.image import Image, ImageError, KernelAttributes, RangeImage
from sim import BoundedFolder

_SUFFIX, _RANGE_SUFFIX = ".cimg", ".crng"


def attributes_of(image: Image) -> KernelAttributes:
    """Return the attributes of an image that is a kernel; raises ``ImageError`` if it has none, ``AttributeProblem`` if
    they are damaged."""
    if not image.meta.kernel_attributes:
        raise ImageError(f"image {image.meta.model!r} is no kernel: it has no kernel_attributes")
    return KernelAttributes.parse(image.meta.kernel_attributes)


def read_kernels(folder: Path) -> list[Image]:
    """Return all kernels of ``folder``, by file name. Raises ``ImageError`` for a file that is damaged or no kernel,
    and names it."""
    images = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        image = Image.load(path)
        if not image.meta.kernel_attributes:
            raise ImageError(f"{path}: the image is no kernel: it has no kernel_attributes; remove it from the folder")
        images.append(image)
    return images


class KernelFiles:
    """Keeps kernels in ``folder``, of ``most`` bytes together: those not used for longest go first. Files are checked
    when read; a damaged one is removed, so that it is made again."""

    def __init__(self, folder: Path, most: int = 512 << 20) -> None:
        self._files = BoundedFolder(folder, most)

    @property
    def folder(self) -> Path:
        """Return the folder in which the kernels are."""
        return self._files.path

    def find(self, origin: str, attributes: KernelAttributes) -> Image | None:
        """Return the kernel with these attributes that was made from ``origin`` (all that it depends on, as text)."""
        name = _name(origin, attributes)
        raw = self._read(name)
        if raw is None:
            return None
        try:
            image = Image.from_bytes(raw, name)
        except ImageError:
            image = None
        if image is None or image.meta.kernel_attributes != attributes.to_dict():
            self._files.remove(name)
            return None
        self._files.used(name)
        return image

    def find_range(self, origin: str, attributes: KernelAttributes, lengths: range) -> RangeImage | None:
        """Return the range kernel with these attributes and ``lengths`` that was made from ``origin``."""
        name = _name(origin, attributes, _RANGE_SUFFIX)
        raw = self._read(name)
        if raw is None:
            return None
        try:
            found = RangeImage.from_bytes(raw, name)
        except ImageError:
            found = None
        if found is None or found.attributes != attributes:
            self._files.remove(name)
            return None
        if found.lengths != sorted(lengths):  # another step
            return None
        self._files.used(name)
        return found

    def keep_range(self, origin: str, image: RangeImage) -> None:
        """Keep a range kernel that was made from ``origin``."""
        self._files.write(_name(origin, image.attributes, _RANGE_SUFFIX), image.to_bytes())
        self._files.prune()

    def keep(self, origin: str, image: Image) -> None:
        """Keep a kernel that was made from ``origin``."""
        self._files.write(_name(origin, attributes_of(image)), image.to_bytes())
        self._files.prune()

    def _read(self, name: str) -> bytes | None:
        try:
            return self._files.read(name)
        except OSError:
            return None


def _name(origin: str, attributes: KernelAttributes, suffix: str = _SUFFIX) -> str:
    named = "\0".join((origin, attributes.key, str(attributes.covered.written())))
    return f"{hashlib.sha256(named.encode()).hexdigest()[:32]}{suffix}"
