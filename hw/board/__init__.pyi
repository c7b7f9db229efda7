from .host_port import HostPort as HostPort
from .memory import BlockMemory as BlockMemory
from .top import BoardTop as BoardTop
