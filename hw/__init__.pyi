from .blocks import BLOCKS as BLOCKS
from .interfaces import ADDR as ADDR, AXI_ID_WIDTH as AXI_ID_WIDTH, Axi4 as Axi4, Axi4Lite as Axi4Lite
from .soc import Soc as Soc
