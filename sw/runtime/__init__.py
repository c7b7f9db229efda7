"""The run time: inferences of loaded models, above the driver."""

from sw.runtime.choice import Choice
from sw.runtime.ports import InputError
from sw.runtime.priority import PriorityRuntime
from sw.runtime.priority_request import PriorityRequest
from sw.runtime.request import Request
from sw.runtime.runtime import Runtime
from sw.runtime.session import Session
from sw.runtime.spans import Span
from sw.runtime.stats import LayerStats, RunStats

__all__ = [
    "Choice",
    "InputError",
    "LayerStats",
    "PriorityRequest",
    "PriorityRuntime",
    "Request",
    "RunStats",
    "Runtime",
    "Session",
    "Span",
]
