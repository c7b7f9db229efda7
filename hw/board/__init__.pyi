from .host_port import HostPort as HostPort
from .memory import BlockMemory as BlockMemory
from .sdram import SdramPins as SdramPins
from .top import BoardTop as BoardTop
