"""**Run-time kernel matching** has a library of kernels, and the choice among them for each operation of each
inference.

A *kernel* is compiled code with attributes (``hw.contract.kernel_attributes``). A *demand* is what an operation asks
for; with the current class-2 value it is matched against the library.
"""

from sw.kernels.demand import KernelDemand, KernelOperation, Parameter, Quotient, demands_of
from sw.kernels.kernel_library import DuplicateKernelError, KernelLibrary, LibraryKernel, NoKernelError
from sw.kernels.on_demand import OnDemandKernels

__all__ = [
    "DuplicateKernelError",
    "KernelDemand",
    "KernelLibrary",
    "KernelOperation",
    "LibraryKernel",
    "NoKernelError",
    "OnDemandKernels",
    "Parameter",
    "Quotient",
    "demands_of",
]
