"""Kernels on disk, each an image file of its own: a folder that keeps them for the next time."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from hw.contract.image import Image, ImageError
from hw.contract.kernel_attributes import KernelAttributes

_SUFFIX = ".cimg"


def attributes_of(image: Image) -> KernelAttributes:
    """The attributes of an image that is a kernel; ``ImageError`` if it has none, ``AttributeProblem`` if they are
    damaged."""
    if not image.meta.kernel_attributes:
        raise ImageError(f"image {image.meta.model!r} is no kernel: it has no kernel_attributes")
    return KernelAttributes.parse(image.meta.kernel_attributes)


def read_kernels(folder: Path) -> list[Image]:
    """All kernels of ``folder``, by file name. Raises ``ImageError`` for a file that is damaged or no kernel, and names
    it."""
    images = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        image = Image.load(path)
        if not image.meta.kernel_attributes:
            raise ImageError(f"{path}: the image is no kernel: it has no kernel_attributes; remove it from the folder")
        images.append(image)
    return images


class KernelFiles:
    """A cache of kernels in ``folder``, of ``most`` bytes together: those not used for longest go first. Files are
    written at once or not at all and checked when read; a damaged one is removed, so that it is made again. A folder
    that cannot be written to costs the next process its time."""

    def __init__(self, folder: Path, most: int = 512 << 20) -> None:
        self.folder, self._most = folder, most

    def find(self, origin: str, attributes: KernelAttributes) -> Image | None:
        """The kernel with these attributes that was made from ``origin`` (all that it depends on, as text)."""
        path = self._path(origin, attributes)
        if not path.exists():
            return None
        try:
            image = Image.load(path)
        except ImageError:
            image = None
        if image is None or image.meta.kernel_attributes != attributes.to_dict():
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return image

    def keep(self, origin: str, image: Image) -> None:
        """Keep a kernel that was made from ``origin``."""
        path = self._path(origin, attributes_of(image))
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            image.save(draft)
            draft.replace(path)
        self._prune()

    def _prune(self) -> None:
        total = 0
        for _, size, path in sorted(self._files(), reverse=True):
            total += size
            if total > self._most:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was used, its size, and where it is; drafts of processes that died too."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                with contextlib.suppress(OSError):  # another process may have removed it
                    about = entry.stat()
                    yield about.st_mtime, about.st_size, Path(entry.path)

    def _path(self, origin: str, attributes: KernelAttributes) -> Path:
        named = "\0".join((origin, attributes.key, str(attributes.covered.written())))
        return self.folder / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}{_SUFFIX}"
