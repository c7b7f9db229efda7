"""Serves requests on several devices, each with a run time of its own: whoever arrives goes where it is expected to end
first (**Queue-time balancing**, between devices)."""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hw.contract.bus import BusError, BusTimeout
from hw.image import Image
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime.model_data import Arrays
from sw.runtime.request import Inputs, Request, RequestCancelled
from sw.runtime.runtime import DeviceHandle, Runtime, driver_of


@dataclass(frozen=True, eq=False)
class FleetModel:
    """Is a model that is loaded on every device of a fleet that serves; ``copies``: by number of the device."""

    copies: Mapping[int, LoadedModel]


@dataclass(eq=False)
class FleetRequest:
    """Is one inference on a fleet. ``arrival``: cycle from which it may run. ``device``: number of the one that serves
    it, None until it has arrived. ``repeated``: how often it began again elsewhere, as its device had died."""

    model: FleetModel
    inputs: Inputs
    arrival: int
    how: dict[str, Any]
    device: int | None = None
    request: Request | None = None
    error: Exception | None = None
    repeated: int = 0

    def done(self) -> bool:
        """Return whether it has ended, well or not."""
        return self.error is not None or (self.request is not None and self.request.done())

    @property
    def ended(self) -> int | None:
        """Return the cycle at which it ended, None before."""
        return None if self.request is None else self.request.ended

    def result(self) -> Arrays:
        """Return outputs by name once it is done; raises what made it fail."""
        if self.error is not None:
            raise self.error
        if self.request is None or not self.request.done():
            raise DriverError("this request has not ended: call run_until_done of its fleet first")
        return self.request.result()


@dataclass(eq=False)
class _Member:
    """Is a device of a fleet, with its run time and the requests that it serves."""

    device: Device
    runtime: Runtime
    serving: list[FleetRequest] = field(default_factory=list)
    dead: Exception | None = None

    @property
    def cycle(self) -> float:
        """Return its time, which is infinity while it has nothing to do."""
        return self.device.bus.cycle if self.serving else math.inf

    def wait(self, arrival: int) -> float:
        """Return how long a request that arrives then would wait for what is there, by estimate."""
        return max(0.0, self.device.bus.cycle - arrival) + max(self.runtime.queue_times())


class Fleet:
    """Runs requests on ``devices``, as :class:`~sw.runtime.runtime.Runtime` does on one; ``order`` and ``options`` are
    as there, for each device. Devices tell time apart, and go on in step: the one that is behind goes first.

    A device whose driver cannot go on (its engine does not come out of reset, its bus fails or does not answer) is
    taken out. What it served starts over on the others; without any it fails, with that device's error.
    """

    def __init__(self, devices: Sequence[Device | DeviceHandle], order: str = "idle_time", **options: Any) -> None:
        if not devices:
            raise ValueError("a fleet has at least one device")
        drivers = [driver_of(device) for device in devices]
        self._members = [_Member(device, Runtime(device, order, **options)) for device in drivers]
        self._coming: list[tuple[int, int, FleetRequest]] = []  #: a heap by arrival
        self._count = 0

    @property
    def alive(self) -> list[int]:
        """Return the numbers of the devices that still serve."""
        return [number for number, member in enumerate(self._members) if member.dead is None]

    def load(self, image: Image, engines: Sequence[int] | None = None, **how: Any) -> FleetModel:
        """Load ``image`` on every device that serves, as ``Device.load`` does; on none if one refuses it."""
        copies: dict[int, LoadedModel] = {}
        try:
            for number in self.alive:
                copies[number] = self._members[number].device.load(image, engines, **how)
        except Exception:
            for number, model in copies.items():
                self._members[number].device.unload(model)
            raise
        return FleetModel(copies)

    def submit(self, model: FleetModel, inputs: Inputs, *, arrival: int = 0, **how: Any) -> FleetRequest:
        """Return a request for an inference of ``model`` that arrives at cycle ``arrival``; ``how`` is as for
        ``Runtime.submit``. Its device is chosen when it arrives."""
        request = FleetRequest(model, inputs, arrival, how)
        self._wait(request)
        return request

    def _wait(self, request: FleetRequest) -> None:
        self._count += 1
        heapq.heappush(self._coming, (request.arrival, self._count, request))

    def run_until_done(self) -> None:
        """Run until every request has ended. Errors of a request are left in it."""
        while self._coming or any(member.serving for member in self._members):
            behind = min(self._members, key=lambda member: member.cycle)
            if self._coming and self._coming[0][0] <= behind.cycle:
                self._dispatch(heapq.heappop(self._coming)[2])
            else:
                self._step(behind)

    def close(self) -> None:
        """Close the run times of all devices that serve."""
        for number in self.alive:
            self._members[number].runtime.close()

    def _dispatch(self, request: FleetRequest) -> None:
        """Give ``request`` to the device on which it waits least, of equals to the first."""
        if not self.alive:
            request.error = next(member.dead for member in self._members if member.dead is not None)
            return
        number = min(self.alive, key=lambda number: self._members[number].wait(request.arrival))
        member = self._members[number]
        try:
            request.request = member.runtime.submit(
                request.model.copies[number], request.inputs, arrival=request.arrival, **request.how
            )
        except Exception as error:  # what was asked for cannot be
            request.error = error
            return
        request.device = number
        member.serving.append(request)

    def _step(self, member: _Member) -> None:
        try:
            member.runtime.step()
        except (DriverError, BusError, BusTimeout) as error:
            self._take_out(member, error)
        member.serving = [request for request in member.serving if not request.done()]

    def _take_out(self, member: _Member, error: Exception) -> None:
        """Let what a device served start over elsewhere, at its own arrival."""
        member.dead = error
        left, member.serving = [one for one in member.serving if not _ended_well(one)], []
        for request in left:
            request.request, request.device, request.repeated = None, None, request.repeated + 1
            self._wait(request)


def _ended_well(request: FleetRequest) -> bool:
    """Return whether a request on a device that has died has ended by itself."""
    found = request.request
    return found is not None and found.done() and not isinstance(found.error, RequestCancelled)
