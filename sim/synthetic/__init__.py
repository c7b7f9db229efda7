"""The synthetic machine has queues, memory access and compute with given durations, without instructions or data."""

from sim.synthetic.job import MachineObserver, SyntheticJob
from sim.synthetic.machine import SwitchCost, SyntheticMachine

__all__ = ["MachineObserver", "SwitchCost", "SyntheticJob", "SyntheticMachine"]
