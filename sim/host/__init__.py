"""This folder holds what the CPU does: onnxruntime runs steps of an image, which take it a number of cycles."""

from sim.host.contained import DEFAULT_LIMITS, ContainedModels, HostLimits, HostModelError, HostStepError
from sim.host.cost import HostWork, work_of
from sim.host.session import HostSession, run_host, session, session_options

__all__ = [
    "DEFAULT_LIMITS", "ContainedModels", "HostLimits", "HostModelError", "HostSession", "HostStepError", "HostWork",
    "run_host", "session", "session_options", "work_of",
]  # fmt: skip
