"""Moves the data of a loaded model between host and device, and computes its steps on the CPU."""

from collections.abc import Mapping

import numpy.typing as npt

from hw.image import StepInfo
from sw.driver import Device, LoadedModel
from sw.runtime.host_steps import HostSteps
from sw.runtime.ports import InputError, by_name, from_tensor, to_tensor

Arrays = dict[str, npt.NDArray]


class ModelData:
    """Knows the tensors of one loaded model, and has its host models ready to run."""

    def __init__(self, device: Device, model: LoadedModel) -> None:
        self.device, self.model = device, model
        self._tensors = {tensor.name: tensor for tensor in model.image.meta.tensors}
        self._host = HostSteps(model.image)

    def read_tensor(self, name: str) -> npt.NDArray:
        """Return a tensor of the last inference as it is stored, by the image's name for it."""
        return self.model.read_tensor(name)

    def _by_name(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
        names = [port.name for port in self.model.image.meta.inputs]
        given = by_name(names, inputs)
        for name in [n for n in names if n not in given] + [n for n in given if n not in names]:
            problem = "is missing" if name in names else "does not exist"
            raise InputError(f"input {name!r} {problem}; model {self.model.name!r} takes {', '.join(map(repr, names))}")
        return given

    def store(self, inputs: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> None:
        """Convert inputs, given as for ``Session.run``, and write them to the device; raises :class:`InputError` as it
        does."""
        given = self._by_name(inputs)
        ports = self.model.image.meta.inputs
        stored = {port.tensor: to_tensor(port, self._tensors[port.tensor], given[port.name]) for port in ports}
        for name, value in stored.items():
            self.model.write_tensor(name, value)

    def fetch(self) -> Arrays:
        """Return the outputs of the last inference by name."""
        ports = self.model.image.meta.outputs
        return {p.name: from_tensor(p, self._tensors[p.tensor], self.model.read_tensor(p.tensor)) for p in ports}

    def host_cycles(self, step: StepInfo) -> int:
        """Return the cycles that ``step`` takes the CPU, which are 0 for one that runs on the accelerator."""
        return self._host.cycles(step, self.device.bus.costs) if step.kind == "host" else 0

    def compute_host(self, step: StepInfo) -> Arrays:
        """Return outputs by name of a step that belongs to the CPU, from what it reads on the device."""
        return self._host.run(step, {name: self.model.read_tensor(name) for name in step.inputs})

    def store_host(self, values: Arrays) -> None:
        """Write outputs of a step on the CPU to the device."""
        for name, value in values.items():
            self.model.write_tensor(name, value)
