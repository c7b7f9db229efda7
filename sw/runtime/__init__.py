"""The run time serves inferences of loaded models, above the driver."""

from sw.runtime.ports import InputError
from sw.runtime.preemption_mechanism import Mechanism
from sw.runtime.request import DeadlineMissed, Request, RequestCancelled, State
from sw.runtime.runtime import Runtime
from sw.runtime.session import Session
from sw.runtime.spans import RunSpan
from sw.runtime.stats import LayerStats, RunStats

__all__ = [
    "DeadlineMissed",
    "InputError",
    "LayerStats",
    "Mechanism",
    "Request",
    "RequestCancelled",
    "RunSpan",
    "RunStats",
    "Runtime",
    "Session",
    "State",
]
