from .gate_line import GateLine as GateLine
from .gate_simulator import GateSimulator as GateSimulator
from .netlist import GateError as GateError, GateNetlist as GateNetlist
