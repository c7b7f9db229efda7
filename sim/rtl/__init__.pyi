from . import native as native
from .base import RtlBus as RtlBus, Until as Until
from .compiled import CompiledBus as CompiledBus
from .native.build import recipe as recipe
from .opening import design_digest as design_digest, is_built as is_built, open_bus as open_bus
from .pysim import PysimBus as PysimBus
from .rtlil import to_rtlil as to_rtlil
from .side_by_side import DisagreementError as DisagreementError, SideBySideBus as SideBySideBus
from .top import SimTop as SimTop
from .verilog import converted as converted, write_verilog as write_verilog
from .yosys import YOSYS as YOSYS, run_yosys as run_yosys
