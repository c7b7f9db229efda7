"""What the CPU does: steps of an image run by onnxruntime, and the cycles that they take."""

from sim.host.cost import HostWork, work_of
from sim.host.session import HostSession, run_host, session, session_options

__all__ = ["HostSession", "HostWork", "run_host", "session", "session_options", "work_of"]
