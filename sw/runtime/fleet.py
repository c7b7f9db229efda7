"""Serves requests on several devices, each with a run time of its own: whoever arrives goes where it is expected to end
first (**Queue-time balancing**, between devices)."""

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hw.contract.bus import BusError, BusTimeout
from hw.contract.html_table import html_table
from hw.image import Image
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime.batched_steps import BatchedStep
from sw.runtime.conversation import Conversation
from sw.runtime.conversation_batch import BatchedConversation
from sw.runtime.model_data import Arrays
from sw.runtime.policies import OrderChoice, PolicyObject, order_maker, policy_name
from sw.runtime.request import Inputs, Request
from sw.runtime.runtime import DeviceHandle, ModelHandle, ModelOfInputs, Runtime, driver_of
from sw.runtime.waiting_requests import RequestSource


class ModelOnDevices(Protocol):
    """Is a model that is loaded on every device of a fleet that serves."""

    def on(self, device: int) -> LoadedModel | ModelHandle | ModelOfInputs | Conversation | BatchedConversation:
        """Return what the next request on the device of that number runs."""


@dataclass(frozen=True, eq=False)
class FleetModel:
    """Is a model that is loaded once on every device that serves; ``copies``: by number of the device."""

    copies: Mapping[int, LoadedModel]

    def on(self, device: int) -> LoadedModel:
        """Return the model as it is loaded on the device of that number."""
        return self.copies[device]


@dataclass(eq=False)
class FleetRequest:
    """Is one inference on a fleet. ``arrival``: cycle from which it may run. ``device``: number of the one that serves
    it, None until it has arrived. ``step``: what it is of a request that steps of other conversations share.
    ``repeated``: how often it began again elsewhere, as its device had died."""

    model: ModelOnDevices
    inputs: Inputs
    arrival: int
    how: dict[str, Any]
    device: int | None = None
    request: Request | None = None
    step: BatchedStep | None = None
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
        return self.request.result() if self.step is None else self.step.result()

    @property
    def outputs(self) -> Arrays | None:
        """Return outputs by name, None if there are none."""
        if self.step is not None and self.request is not None and self.request.outputs is not None:
            return self.step.result()
        return None if self.request is None else self.request.outputs


@dataclass(eq=False)
class _Member:
    """Is a device of a fleet, with its run time and the requests that it serves."""

    device: Device
    runtime: Runtime
    serving: dict[Request, list[FleetRequest]] = field(default_factory=dict)  #: one each, or those that share it
    dead: Exception | None = None

    @property
    def cycle(self) -> float:
        """Return its time, which is infinity while it has nothing to do."""
        return self.device.bus.cycle if self.serving else math.inf

    def wait(self, arrival: int) -> float:
        """Return how long a request that arrives then would wait for what is there, by estimate."""
        return max(0.0, self.device.bus.cycle + max(self.runtime.queue_times()) - arrival)


class Fleet:
    """Runs requests on ``devices``, as :class:`~sw.runtime.runtime.Runtime` does on one; ``policy`` and ``options`` are
    as there, for each device. Devices tell time apart, and go on in step: the one that is behind goes first.

    A device whose driver cannot go on (its engine does not come out of reset, its bus fails or does not answer) is
    taken out. What it served starts over on the others; without any it fails, with that device's error.

    ``on_end``: called with each request when it has ended for good; it may submit others.
    """

    def __init__(
        self, devices: Sequence[Device | DeviceHandle], policy: OrderChoice | None = None, *,
        on_end: Callable[[FleetRequest], None] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if not devices:
            raise ValueError("a fleet has at least one device")
        if policy is not None and len(devices) > 1 and isinstance(order_maker(policy), PolicyObject):
            raise ValueError(
                f"one {policy_name(policy)} cannot decide for {len(devices)} devices, each of which has a time of its "
                "own: give its class"
            )
        self._members: list[_Member] = []
        for number, device in enumerate(map(driver_of, devices)):
            self._members.append(_Member(device, Runtime(device, policy, on_end=self._ender(number), **options)))
        self._on_end = on_end or (lambda request: None)
        self._coming: list[tuple[int, int, FleetRequest]] = []  #: a heap by arrival
        self._count = 0
        self._source: RequestSource | None = None

    def __repr__(self) -> str:
        """Return in a line how many devices there are, and how many requests they serve."""
        out = f", taken out {len(self.dead)}" if self.dead else ""
        serving = sum(len(member.serving) for member in self._members)
        return f"<Fleet of devices {len(self._members)}{out}: serving {serving}, to come {len(self._coming)}>"

    def _repr_html_(self) -> str:
        """Return a table of its devices, as notebooks show it."""
        rows = [
            (
                number, member.device.params.name, member.device.bus.cycle, len(member.serving),
                sum(one.done() for one in member.runtime.requests),
                None if member.dead is None else type(member.dead).__name__,
            )
            for number, member in enumerate(self._members)
        ]  # fmt: skip
        return html_table(self, ("device", "machine", "cycle", "serving", "ended", "taken out for"), rows)

    @property
    def alive(self) -> list[int]:
        """Return the numbers of the devices that still serve."""
        return [number for number, member in enumerate(self._members) if member.dead is None]

    @property
    def dead(self) -> dict[int, Exception]:
        """Return of each device that was taken out why, by its number."""
        return {number: member.dead for number, member in enumerate(self._members) if member.dead is not None}

    @property
    def runtimes(self) -> list[Runtime]:
        """Return the run time of each device, of those that were taken out too."""
        return [member.runtime for member in self._members]

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

    def submit(self, model: ModelOnDevices, inputs: Inputs, *, arrival: int = 0, **how: Any) -> FleetRequest:
        """Return a request for an inference of ``model`` that arrives at cycle ``arrival``; ``how`` is as for
        ``Runtime.submit``. Its device is chosen when it arrives, or now if it is ``announced`` or there is no choice.
        """
        request = FleetRequest(model, inputs, arrival, how)
        if how.get("announced") or len(self.alive) == 1:
            self._dispatch(request)
        else:
            self._wait(request)
        return request

    def _wait(self, request: FleetRequest) -> None:
        self._count += 1
        heapq.heappush(self._coming, (request.arrival, self._count, request))

    def run_until_done(self, source: RequestSource | None = None) -> None:
        """Run until every request has ended, those included that ``source`` submits meanwhile. Errors of a request are
        left in it."""
        self._source = source
        for number in self.alive:
            self._members[number].runtime.serve(_Coming(self))
        while True:
            self.bring(self.now)
            behind = min(self._members, key=lambda member: member.cycle)
            if behind.serving:
                self._guarded(behind, behind.runtime.step)
            elif self.next_cycle() is None:
                break
        self._source = None
        for number in self.alive:
            self._guarded(
                self._members[number], self._members[number].runtime.run_until_done
            )  # what is left of restores

    def close(self) -> None:
        """Close the run times of all devices that serve."""
        for number in self.alive:
            self._members[number].runtime.close()

    # -- arrivals --------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Return the cycle of the device that is behind of those that serve requests: nothing ends before it any more.
        It is infinity if none does."""
        return min(member.cycle for member in self._members)

    def next_cycle(self) -> int | None:
        """Return when the next request arrives, or the source goes on by itself; None if only after an end."""
        due = [arrival for arrival, *_ in self._coming[:1]]
        goes_on = None if self._source is None else self._source.next_cycle()
        return min(due if goes_on is None else [*due, goes_on], default=None)

    def bring(self, cycle: float) -> None:
        """Take what arrives by ``cycle`` from the source, and give it to devices; but nothing that comes after an end
        that is still unknown."""
        while (due := self.next_cycle()) is not None and due <= min(cycle, self.now):
            if self._coming and self._coming[0][0] <= due:
                self._dispatch(heapq.heappop(self._coming)[2])
            elif self._source is not None:
                self._source.run_until(due)

    def _dispatch(self, request: FleetRequest) -> None:
        """Give ``request`` to the device on which it waits least, of equals to the first."""
        try:
            if not self.alive:
                raise next(iter(self.dead.values()))
            number, *others = self.alive
            if others:
                number = min(self.alive, key=lambda number: self._members[number].wait(request.arrival))
            self._submit(request, self._members[number].runtime, request.model.on(number))
        except Exception as error:  # what was asked for cannot be, or there is no device
            request.error = error
            self._on_end(request)
            return
        assert request.request is not None
        request.device, request.request.repeated = number, request.repeated
        self._members[number].serving.setdefault(request.request, []).append(request)

    def _submit(
        self, request: FleetRequest, runtime: Runtime,
        model: LoadedModel | ModelHandle | ModelOfInputs | Conversation | BatchedConversation,
    ) -> None:  # fmt: skip
        how = {"arrival": request.arrival, **request.how}
        if isinstance(model, BatchedConversation):
            request.step = runtime.submit_step(model, request.inputs, **how)
            request.request = request.step.request
        else:
            request.request = runtime.submit(model, request.inputs, **how)

    # -- ends ------------------------------------------------------------------------------------------------
    def _ender(self, number: int) -> Callable[[Request], None]:
        """Return what the run time of a device calls with a request that has ended."""

        def ended(one: Request) -> None:
            for served in self._members[number].serving.pop(one, ()):  # none if somebody else gave it to the run time
                self._on_end(served)

        return ended

    def _guarded(self, member: _Member, action: Callable[[], None]) -> None:
        try:
            action()
        except (DriverError, BusError, BusTimeout) as error:
            self._take_out(member, error)

    def _take_out(self, member: _Member, error: Exception) -> None:
        """Let what a device served start over elsewhere, at its own arrival."""
        member.dead = error
        left, member.serving = member.serving, {}
        for request in itertools.chain.from_iterable(left.values()):
            request.request, request.step, request.device = None, None, None
            request.repeated += 1
            self._wait(request)


class _Coming:
    """Is the source of each run time of ``fleet``: it brings what arrives to all of them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def next_cycle(self) -> int | None:
        """Return when the fleet next gives something to a device, as ``RequestSource`` describes it."""
        return self._fleet.next_cycle()

    def run_until(self, cycle: int) -> None:
        """Give what is due to devices, as ``RequestSource`` describes it."""
        self._fleet.bring(cycle)
