from .boards import PARTS as PARTS, Part as Part
from .flow import Flow as Flow
from .netlist import Netlist as Netlist, elaborated as elaborated, in_harness as in_harness
from .tools import found as found, version as version
