from .machine import FunctionalFault as FunctionalFault, Machine as Machine
from .strided import Box as Box
