"""Is the run time for several models at once: layer by layer, under a policy (**Idle-time layer scheduling**,
**Queue-time balancing**), with preemption by priority (**Cancellation points**) if wanted."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from sw.admission import Admission
from sw.driver import Device, DriverError, LoadedModel
from sw.runtime.admitted_streams import (
    AdmittedStreams,
    always_dump,
    refuse_beside_certificate,
    refuse_with_stream,
)
from sw.runtime.batched_steps import BatchedStep, BatchedSteps
from sw.runtime.conversation import Conversation
from sw.runtime.conversation_batch import BatchedConversation
from sw.runtime.device_queues import Engines
from sw.runtime.model_data import ModelData
from sw.runtime.policies import OrderChoice, PlacementChoice, policy_name
from sw.runtime.preemption_mechanism import Mechanism, Situation, choose
from sw.runtime.request import Inputs, Request
from sw.runtime.request_runner import HISTORY, RequestRunner
from sw.runtime.request_table import requests_table
from sw.runtime.rules import Rules
from sw.runtime.taking_turns import turns_taken


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


class Runtime(RequestRunner):
    """Runs requests of several loaded models side by side on one device.

    Each time a layer starts to load, ``policy`` (a name, a class or other maker, or an object of
    :mod:`caesura.policies`; ``idle_time`` if not given) chooses whose layer is next; its jobs are queued at once, so
    that the loader fetches its weights while others compute.
    Models whose LV2 windows overlap take turns, which ``taking_turns`` tells, and so do requests of one loaded model:
    load a model twice to have two in flight.

    A request that has the device to itself stores the durations of its layers in its image, if that has none.

    Steps of a model that the CPU computes take their time (``hw.contract.bus.HostCosts``), one after the other on a
    core of its own, beside the one that runs driver and scheduler; layers of other requests run meanwhile.

    Layers run on the engines that were chosen for their model or its request, so that models on different engines run
    side by side. With ``placed``, ``placement`` (likewise, ``queue_time`` if not given) says on which engine each layer
    runs. Layers of a model that was compiled with ``placed`` wait for those that they read; those of one compiled for
    one engine (``engines=1``) run one after the other.

    Parameters
    ----------
    device : as ``caesura.open`` returns it, or its driver
    preemptive : more urgent requests suspend less urgent ones that are in their way, on their engines or in LV2; on
        engines where others are suspended one at a time
    at_arrival : place all layers of a request when it arrives, as queue balancers do
    ahead : layers that may be queued and not have begun to compute, as many as an engine has job slots by default; more
        hide longer loads, fewer react sooner
    layers_per_decision : decided on at a time, for the cost of one decision
    gain : how far a measurement moves an estimate, see ``Estimates``
    rule : what to do on a more urgent arrival
    may_kill : offer ``rule`` to kill what runs, which then starts again from its beginning
    on_end : called with each request when it has ended; it may submit others
    initial_waits : of each engine's queue, for queue-time balancing, in cycles
    initial_waits_decay : they fall with every cycle from now on, as of engines that warm up
    history : how many requests, groups, spans, decisions and dumps are remembered, the newest of each; None: all
    certificate : as ``caesura.admit`` returns it. Its streams are served, and no others: first come, first served by
        the priorities that it has, with preemption. Who is in the way is always dumped. A request that comes sooner
        than its stream may send it is let in later (``Request.deferred``); a stream of which one fails is below all
        others from then on. What contradicts that, or a certificate that refuses a stream, raises ``ValueError``
    """

    def __init__(
        self,
        device: Device | DeviceHandle,
        policy: OrderChoice | None = None,
        placement: PlacementChoice | None = None,
        *,
        placed: bool = False,
        preemptive: bool = False,
        at_arrival: bool = False,
        ahead: int | None = None,
        gain: float = 0.5,
        rule: Callable[[Situation], Mechanism] = choose,
        may_kill: bool = False,
        on_end: Callable[[Request], None] | None = None,
        initial_waits: Sequence[float] | None = None,
        initial_waits_decay: bool = False,
        layers_per_decision: int = 1,
        history: int | None = HISTORY,
        certificate: Admission | None = None,
    ) -> None:
        admitted = None
        if certificate is not None:
            refuse_beside_certificate(
                policy=policy_name(policy or "fcfs") != "fcfs", placement=placement is not None, placed=placed,
                at_arrival=at_arrival, ahead=ahead is not None, rule=rule is not choose, may_kill=may_kill,
                initial_waits=initial_waits is not None, layers_per_decision=layers_per_decision != 1,
            )  # fmt: skip
            admitted, policy, preemptive, rule = AdmittedStreams(certificate), "fcfs", True, always_dump
        device = driver_of(device)
        device.remember(history)
        rules = Rules.chosen(
            device, policy or "idle_time", placement, placed=placed, preemptive=preemptive, may_kill=may_kill,
            ahead=ahead, at_arrival=at_arrival, per_decision=layers_per_decision, initial_waits=initial_waits,
            decay=initial_waits_decay,
        )  # fmt: skip
        super().__init__(
            device, rules, name="a run time with requests that have not ended", gain=gain, mechanism=rule,
            on_end=on_end, history=history, admitted=admitted,
        )  # fmt: skip
        self._data: dict[int, ModelData] = {}
        self._steps_together = BatchedSteps(self.accept, lambda: device.bus.cycle)

    def __repr__(self) -> str:
        """Return in a line whose it is, and how many requests there are."""
        left = sum(not request.done() for request in self.requests)
        return f"<Runtime on {self.device.params.name!r}: requests {len(self.requests)}, not ended {left}>"

    def _repr_html_(self) -> str:
        """Return a table of its requests, the newest first, as notebooks show it."""
        return requests_table(self, reversed(self.requests))

    @property
    def taking_turns(self) -> str | None:
        """Return which loaded models take turns, as their windows in LV2 overlap, and what mends it; None if all can
        run side by side."""
        return turns_taken(self.device)

    def submit(
        self,
        model: LoadedModel | ModelHandle | ModelOfInputs | Conversation,
        inputs: Inputs,
        *,
        priority: int = 0,
        deadline: float | None = None,
        soft_deadline: bool = False,
        arrival: int = 0,
        announced: bool = False,
        engines: Engines = None,
        tag: object = None,
        stream: str | None = None,
    ) -> Request:
        """Return a request for an inference of ``model``, as ``caesura.Device.load`` or the driver returns it, or of
        the one that a ``caesura.dynamic`` model has for ``inputs``, or for the next step of a conversation, that
        arrives at cycle ``arrival`` (0: now). ``tag`` is the caller's.

        ``deadline``: the last cycle at which it may end, counted as ``arrival`` is, from the device's beginning. One
        that has not ended then is aborted, whether it waits, runs, is suspended or on the CPU, and its error is
        :class:`DeadlineMissed`. It ends at once, unless jobs of others stand on its engines: then it ends with the last
        of its jobs that are queued there, or after 2^20 cycles, and others on these engines start over. Policies may
        look at the deadline; a ``soft_deadline`` is for them alone, and nothing is aborted.

        ``announced``: that it will arrive then is known from now on, as when the CPU computes its inputs in a known
        time. Less urgent requests may be suspended ahead of it. Otherwise nothing is done about it before it arrives.

        ``engines``: the engines that run it, see ``Device.assign``; by default those of the model's last inference.
        ``least_busy``: those on which the requests that were submitted before end first, by estimate.

        ``stream``: of the certificate, if the run time has one; it says how urgent the request is, and when it is let
        in. Requests of a stream are let in in the order in which they are submitted.

        Raises ``ValueError`` for a deadline that is no number, or what the certificate does not have; ``DriverError``
        if layers are to be placed and the model was compiled for several engines, or if it cannot run on ``engines``,
        is not loaded, or the device is used by somebody else.
        """
        if deadline is not None and math.isnan(deadline):
            raise ValueError("deadline is not a number: give the last cycle at which the request may end")
        if self.admitted is not None:
            refuse_with_stream(
                priority=priority != 0, announced=announced, engines=engines is not None,
                deadline=deadline is not None and not soft_deadline,
            )  # fmt: skip
        elif stream is not None:
            raise ValueError(f"stream {stream!r}: this run time has no certificate, which has streams; leave it out")
        with self.device.ownership.one_thread():
            if self._closed:
                raise DriverError("this run time was closed: open another")
            loaded = model.model if isinstance(model, Conversation) else loaded_of(model, inputs)
            self.device.refuse_unloaded(loaded)
            data = model if isinstance(model, Conversation) else self._data_of(loaded)
            return self.accept(
                data, inputs, priority=priority, deadline=deadline, soft_deadline=soft_deadline,
                arrival=arrival, announced=announced, engines=engines, tag=tag, stream=stream,
            )  # fmt: skip

    def submit_step(
        self, conversation: BatchedConversation, inputs: Inputs, *, priority: int = 0, deadline: float | None = None,
        soft_deadline: bool = False, arrival: int = 0, announced: bool = False, tag: object = None,
        stream: str | None = None,
    ) -> BatchedStep:  # fmt: skip
        """Return the next step of a conversation of a batch, in a request of which all is as :meth:`submit` says. Steps
        of one batch that are asked for alike before their request starts share it, and so the weights of the model:
        conversations join and leave between tokens. One has one step at a time. Of soft deadlines the request has the
        earliest. Its tag is a list of the tags of its steps."""
        with self.device.ownership.one_thread():
            if self._closed:
                raise DriverError("this run time was closed: open another")
            return self._steps_together.submit(
                conversation, inputs, priority=priority, deadline=deadline, soft_deadline=soft_deadline,
                arrival=arrival, announced=announced, tag=tag, stream=stream,
            )  # fmt: skip

    def _data_of(self, model: LoadedModel) -> ModelData:
        if id(model) not in self._data:
            self._data = {key: kept for key, kept in self._data.items() if kept.model.loaded}
            self._data[id(model)] = ModelData(self.device, model)
        return self._data[id(model)]
