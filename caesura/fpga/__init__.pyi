from .area import by_module as by_module
from .board_setup import BoardSetup as BoardSetup
from .boards import PARTS as PARTS, Part as Part
from .flow import MACHINE_TOOLS as MACHINE_TOOLS, Flow as Flow
from .netlist import (
    Netlist as Netlist,
    elaborated as elaborated,
    in_harness as in_harness,
    on_pins as on_pins,
    with_own_ports as with_own_ports,
)
from .synthesis import blocks_of_products as blocks_of_products, synthesise as synthesise, top_of as top_of
from .tools import found as found, version as version
