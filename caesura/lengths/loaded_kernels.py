"""The kernels that are in device memory, of all that a model has."""

from caesura.api import Device, Model
from hw.contract.image import Image
from sw.driver import DriverError
from sw.driver.errors import OutOfMemory
from sw.kernels import LibraryKernel

Kernel = LibraryKernel[Image]


class LoadedKernels:
    """At most ``most`` kernels beside those that are kept; those not used for longest make room. Equal weights lie in
    memory once."""

    def __init__(self, device: Device, most: int) -> None:
        self._device, self._most = device, most
        self._models: dict[Kernel, Model] = {}  #: the one used last at the end
        self._kept: set[Kernel] = set()

    def __len__(self) -> int:
        return len(self._models)

    def model(self, kernel: Kernel) -> Model:
        """The loaded model of a kernel. Raises what ``Device.load`` does."""
        model = self._models.pop(kernel, None)
        if model is None:
            while len(self._models.keys() - self._kept) >= self._most and self._unload_one():
                pass
            model = self._load(kernel)
        self._models[kernel] = model
        return model

    def keep(self, kernel: Kernel) -> None:
        """Never unload a kernel to make room."""
        self._kept.add(kernel)

    def close(self) -> None:
        """Unload all."""
        while self._models:
            kernel, model = next(iter(self._models.items()))
            self._device.unload(model)
            del self._models[kernel]

    def _load(self, kernel: Kernel) -> Model:
        while True:
            try:
                return self._device.load(kernel.content, like=list(self._models.values()))
            except OutOfMemory:
                if not self._unload_one():
                    raise

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
