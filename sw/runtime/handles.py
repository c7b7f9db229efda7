"""Takes what a run time is given: the driver's device and loaded models, or objects that hold them, as ``caesura.open``
and ``Device.load`` there return."""

from typing import Protocol, runtime_checkable

from sw.driver import Device, LoadedModel
from sw.runtime.request import Inputs


class DeviceHandle(Protocol):
    """Holds the driver of a device."""

    @property
    def driver(self) -> Device:
        """Return the driver."""


class ModelHandle(Protocol):
    """Holds a loaded model."""

    @property
    def loaded(self) -> LoadedModel:
        """Return the model as the driver knows it."""


@runtime_checkable
class ModelOfInputs(Protocol):
    """Has a loaded model for each shape of inputs."""

    def loaded_for(self, inputs: Inputs) -> LoadedModel:
        """Return the loaded model for ``inputs``; raises ``InputError`` if there is none."""


def driver_of(device: Device | DeviceHandle) -> Device:
    """Return the driver of ``device``; raises ``TypeError`` for what is no device."""
    found = device if isinstance(device, Device) else getattr(device, "driver", None)
    if not isinstance(found, Device):
        raise TypeError(f"a run time needs a device, as caesura.open returns, not {type(device).__name__}")
    return found


def loaded_of(model: LoadedModel | ModelHandle | ModelOfInputs, inputs: Inputs) -> LoadedModel:
    """Return the loaded model of ``model`` that runs ``inputs``; raises ``TypeError`` for what is none."""
    if isinstance(model, ModelOfInputs):
        return model.loaded_for(inputs)
    found = model if isinstance(model, LoadedModel) else getattr(model, "loaded", None)
    if not isinstance(found, LoadedModel):
        raise TypeError(f"a request needs a loaded model, as Device.load returns, not {type(model).__name__}")
    return found
