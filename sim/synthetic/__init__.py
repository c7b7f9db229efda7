"""A synthetic machine: queues, memory access and compute with given durations, without instructions or data."""

from sim.synthetic.job import Job, Observer
from sim.synthetic.machine import Machine, SwitchCost

__all__ = ["Job", "Machine", "Observer", "SwitchCost"]
