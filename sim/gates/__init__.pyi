from .gate_line import GateLine as GateLine
from .gate_simulator import GateSimulator as GateSimulator
from .netlist import GateNetlist as GateNetlist, GateError as GateError
