"""Keeps the kernels that are in device memory, of all that a model has."""

from collections.abc import Sequence

from caesura.api import Device, Model
from hw.image import Image, RangeImage
from sw.driver import DriverError, OutOfEvents, OutOfMemory
from sw.kernels import LibraryKernel

Kernel = LibraryKernel[Image | RangeImage]
Loaded = tuple[Kernel, int]  #: a kernel, and the length for which it is loaded (0: its only one)


class LoadedKernels:
    """Keeps at most ``most`` kernels beside those that are kept, or in use by requests that have not ended; those not
    used for longest make room, also where memory or hardware events run out. Equal weights lie in memory once, and stay
    in LV2 between calls. A range kernel is loaded for one length at a time, relocated. ``tenant`` and ``engines`` are
    as for ``Device.load``."""

    def __init__(
        self, device: Device, most: int, tenant: str | None = None, engines: Sequence[int] | None = None
    ) -> None:
        self._device, self._most, self._tenant, self._engines = device, most, tenant, engines
        self._models: dict[Loaded, Model] = {}  #: the one used last at the end
        self._kept: set[Loaded] = set()
        self._weights: dict[bytes, bytes] = {}  #: of relocated ones; equal ones are held once

    def __len__(self) -> int:
        return len(self._models)

    def model(self, kernel: Kernel, length: int) -> Model:
        """Return the loaded model of a kernel for ``length``. Raises what ``Device.load`` does."""
        wanted = _loaded(kernel, length)
        model = self._models.pop(wanted, None)
        if model is None:
            while len(self._models.keys() - self._kept) >= self._most and self._unload_one():
                pass
            model = self._load(self._image(kernel, length))
        self._models[wanted] = model
        return model

    def keep(self, kernel: Kernel, length: int) -> None:
        """Do not unload a kernel for ``length`` to make room."""
        self._kept.add(_loaded(kernel, length))

    def release(self, kernel: Kernel, length: int) -> None:
        """Allow that a kernel for ``length`` makes room again."""
        self._kept.discard(_loaded(kernel, length))

    def close(self) -> None:
        """Unload all kernels."""
        while self._models:
            kernel, model = next(iter(self._models.items()))
            self._device.unload(model)
            del self._models[kernel]

    def _image(self, kernel: Kernel, length: int) -> Image:
        if isinstance(kernel.content, Image):
            return kernel.content
        image = kernel.content.image(length)
        image.weights = self._weights.setdefault(image.weights, image.weights)
        return image

    def _load(self, image: Image) -> Model:
        while True:
            try:
                return self._device.load(
                    image, self._engines, like=list(self._models.values()), tenant=self._tenant, keep_weights=True
                )
            except (OutOfMemory, OutOfEvents) as error:
                if not self._unload_one():
                    raise type(error)(f"{error}; {self._in_use()}") from None

    def _in_use(self) -> str:
        """Return why nothing makes room."""
        kept = len(self._models.keys() & self._kept)
        return (
            f"of this model {len(self._models)} kernels are loaded, {kept} of them kept until they are released, the "
            "others in use by requests that have not ended"
        )

    def _unload_one(self) -> bool:
        for kernel, model in self._models.items():
            if kernel not in self._kept:
                try:
                    self._device.unload(model)
                except DriverError:  # its jobs are outstanding
                    continue
                del self._models[kernel]
                return True
        return False


def _loaded(kernel: Kernel, length: int) -> Loaded:
    return kernel, length if isinstance(kernel.content, RangeImage) else 0
