from .job import MachineObserver as MachineObserver, SyntheticJob as SyntheticJob
from .machine import StateMove as StateMove, SwitchCost as SwitchCost, SyntheticMachine as SyntheticMachine
