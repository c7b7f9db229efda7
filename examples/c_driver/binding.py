"""The C driver called from Python, its five functions answered by a ``Bus``: a simulator stands for the hardware."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hw.contract.bus import Bus
from hw.image import DTYPES, HEADER, PORT

_WAIT = 100_000_000  #: cycles that the driver sleeps for at most
_MAX_ENGINES = 16
_FAULT = ("engine", "job", "code", "unit", "pc", "address")
ERRORS = (
    "ok", "no device", "not a flat image, or damaged", "compiled for other hardware", "no memory", "a job faulted",
    "timed out", "bad argument",
)  # fmt: skip

_BAD_IMAGE, _FAULTED = 2, 5  #: of them

_READ_REGISTER = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_WRITE_REGISTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_MEMORY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)
_WAIT_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class CDriverError(RuntimeError):
    """What the driver returned, in words."""


class _Bus(ctypes.Structure):
    _fields_ = [
        ("context", ctypes.c_void_p), ("read_register", _READ_REGISTER), ("write_register", _WRITE_REGISTER),
        ("read_memory", _MEMORY), ("write_memory", _MEMORY), ("wait", _WAIT_FUNCTION),
    ]  # fmt: skip


class _Queue(ctypes.Structure):
    _fields_ = [
        ("ring", ctypes.c_uint64), ("completions", ctypes.c_uint64), ("pushed", ctypes.c_uint32),
        ("retired", ctypes.c_uint32),
    ]  # fmt: skip


class _Fault(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in _FAULT]


class _Device(ctypes.Structure):
    _fields_ = [
        ("bus", _Bus), ("memory", ctypes.c_uint64), ("end", ctypes.c_uint64), ("engines", ctypes.c_uint32),
        ("queues", _Queue * _MAX_ENGINES), ("fault", _Fault), ("problem", ctypes.c_char_p),
    ]  # fmt: skip


class _Model(ctypes.Structure):
    _fields_ = [("file", ctypes.c_void_p), ("base", ctypes.c_uint64 * 8)]


class CDevice:
    """A device that the C driver in ``library`` drives over ``bus``. Raises :class:`CDriverError`."""

    def __init__(self, library: Path, bus: Bus) -> None:
        self._driver, self.bus, self._failed = ctypes.CDLL(str(library)), bus, list[Exception]()
        self._device, self._functions = _Device(), self._answers()
        self.check(
            self._driver.caesura_open(
                ctypes.byref(self._device), ctypes.byref(self._functions), ctypes.c_uint64(0),
                ctypes.c_uint64(bus.params.dram_bytes),
            )
        )  # fmt: skip

    def load(self, file: bytes) -> "CModel":
        """A model in flat form."""
        return CModel(self, self._driver, self._device, file)

    def check(self, error: int) -> None:
        """Raise what the bus raised meanwhile, or the error that the driver returned."""
        if self._failed:
            raise self._failed.pop()
        if error:
            why: object = ""
            if error == _BAD_IMAGE and self._device.problem:
                why = self._device.problem.decode()
            elif error == _FAULTED:
                why = {name: getattr(self._device.fault, name) for name in _FAULT}
            raise CDriverError(f"{ERRORS[error]}: {why}" if why else ERRORS[error])

    def _answers(self) -> _Bus:
        """The five functions. What they raise is kept: C cannot pass it on."""

        def guarded(function: Callable[..., int | None]) -> Callable[..., int | None]:
            def call(_: object, *arguments: int) -> int | None:
                try:
                    return function(*arguments)
                except Exception as error:
                    self._failed.append(error)
                    return 0

            return call

        def read_memory(address: int, target: int, size: int) -> None:
            ctypes.memmove(target, self.bus.read_mem(address, size), size)

        def write_memory(address: int, source: int, size: int) -> None:
            self.bus.write_mem(address, ctypes.string_at(source, size))

        return _Bus(
            None, _READ_REGISTER(guarded(self.bus.read_reg)), _WRITE_REGISTER(guarded(self.bus.write_reg)),
            _MEMORY(guarded(read_memory)), _MEMORY(guarded(write_memory)),
            _WAIT_FUNCTION(guarded(lambda: int(self.bus.wait_irq(_WAIT)))),
        )  # fmt: skip


class CModel:
    """A loaded model. ``inputs``, ``outputs``: shape and dtype of each by name."""

    def __init__(self, device: CDevice, driver: ctypes.CDLL, handle: _Device, file: bytes) -> None:
        self._device, self._driver, self._handle = device, driver, handle
        self._file = ctypes.create_string_buffer(file, len(file))  # the driver refers to it
        code = HEADER.unpack(file[: HEADER.size])["code_bytes"] if len(file) >= HEADER.size else 0
        scratch = ctypes.create_string_buffer(max(1, min(code, len(file))))
        self._model = _Model()
        device.check(
            driver.caesura_load(
                ctypes.byref(handle), ctypes.byref(self._model), self._file, ctypes.c_size_t(len(file)), scratch,
                ctypes.c_size_t(len(scratch)),
            )
        )  # fmt: skip
        header = HEADER.unpack(file[: HEADER.size])
        driver.caesura_port_name.restype = ctypes.c_char_p
        ports = [self._port(header["port_table"], number) for number in range(header["inputs"] + header["outputs"])]
        self.inputs, self.outputs = dict(ports[: header["inputs"]]), dict(ports[header["inputs"] :])

    def _port(self, table: int, number: int) -> tuple[str, tuple[tuple[int, ...], str]]:
        port = PORT.unpack(self._file.raw[table + number * PORT.size :][: PORT.size])
        name = self._driver.caesura_port_name(ctypes.byref(self._model), number).decode()
        return name, (tuple(port[f"extent{axis}"] for axis in range(port["axes"])), DTYPES[port["given"]])

    def __call__(self, inputs: Mapping[str, npt.NDArray]) -> dict[str, npt.NDArray]:
        """One inference: arrays by name, of the shapes and types of :attr:`inputs`."""
        given = [np.ascontiguousarray(inputs[name], dtype) for name, (_, dtype) in self.inputs.items()]
        for value, (shape, _) in zip(given, self.inputs.values(), strict=True):
            if value.shape != shape:
                raise CDriverError(f"an input has shape {value.shape}, expected {shape}")
        made = {name: np.empty(shape, dtype) for name, (shape, dtype) in self.outputs.items()}
        self._device.check(
            self._driver.caesura_run(
                ctypes.byref(self._handle), ctypes.byref(self._model), _pointers(given), _pointers(list(made.values()))
            )
        )
        return made


def _pointers(arrays: Sequence[npt.NDArray]) -> ctypes.Array:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
