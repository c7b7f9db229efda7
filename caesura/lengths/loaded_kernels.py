"""Keeps the kernels that are in device memory, of all that a model has."""

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from caesura.api import Device, Model
from hw.image import Image, RangeImage
from sw.driver import DriverError, OutOfEvents, OutOfMemory, ProgramPlan
from sw.kernels import LibraryKernel

Kernel = LibraryKernel[Image | RangeImage]
Loaded = tuple[Kernel, int]  #: a kernel, and the length for which it is loaded (0: its only one)
Key = TypeVar("Key")


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
        self._programs: dict[tuple, Model] = {}  #: likewise, of several kernels, by plan and kernels
        self._kept: set[Loaded] = set()
        self._weights: dict[bytes, bytes] = {}  #: of relocated ones; equal ones are held once

    def __len__(self) -> int:
        return len(self._models)

    @property
    def programs(self) -> list[Model]:
        """Return the programs of several kernels that are loaded."""
        return list(self._programs.values())

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

    def image(self, kernel: Kernel, length: int) -> Image:
        """Return the image of a kernel for ``length``."""
        model = self._models.get(_loaded(kernel, length))
        return self._image(kernel, length) if model is None else model.image

    def keep(self, kernel: Kernel, length: int) -> None:
        """Do not unload a kernel for ``length`` to make room."""
        self._kept.add(_loaded(kernel, length))

    def release(self, kernel: Kernel, length: int) -> None:
        """Allow that a kernel for ``length`` makes room again."""
        self._kept.discard(_loaded(kernel, length))

    def program(self, parts: Sequence[Loaded], plan: ProgramPlan) -> Model:
        """Return the loaded model that runs these kernels one behind the other, as ``plan`` says. Raises as
        :meth:`model` does where not all have room at once."""
        loaded = [_loaded(*part) for part in parts]
        wanted = (plan, *loaded)
        program = self._programs.pop(wanted, None)
        if program is None:
            while len(self._programs) >= self._most and self._unload_program():
                pass
            kept, self._kept = self._kept, self._kept | {*loaded}
            try:
                kernels = [self.model(*part) for part in parts]
                driver, linked = self._device.driver, [each.loaded for each in kernels]
                program = self._with_room(lambda: Model(driver, driver.link(linked, plan)))
            finally:
                self._kept = kept
        self._programs[wanted] = program
        return program

    def close(self) -> None:
        """Unload all kernels."""
        for loaded in (self._programs, self._models):
            while loaded:
                key, model = next(iter(loaded.items()))
                self._device.unload(model)
                del loaded[key]

    def _image(self, kernel: Kernel, length: int) -> Image:
        if isinstance(kernel.content, Image):
            return kernel.content
        image = kernel.content.image(length)
        image.weights = self._weights.setdefault(image.weights, image.weights)
        return image

    def _load(self, image: Image) -> Model:
        return self._with_room(
            lambda: self._device.load(
                image, self._engines, like=list(self._models.values()), tenant=self._tenant, keep_weights=True
            )
        )

    def _with_room(self, load: Callable[[], Model]) -> Model:
        while True:
            try:
                return load()
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
        """Unload the kernel that was not used for longest, of those that may be, or else a program, so that its kernels
        may be; return whether there was one."""
        return _unload_first(self._device, self._models, self._kept) or self._unload_program()

    def _unload_program(self) -> bool:
        return _unload_first(self._device, self._programs)


def _unload_first(device: Device, loaded: dict[Key, Model], kept: Container[Key] = ()) -> bool:
    for key, model in loaded.items():
        if key not in kept:
            try:
                device.unload(model)
            except DriverError:  # its jobs are outstanding, or a program has it
                continue
            del loaded[key]
            return True
    return False


def _loaded(kernel: Kernel, length: int) -> Loaded:
    return kernel, length if isinstance(kernel.content, RangeImage) else 0
