from .demand import (
    KernelDemand as KernelDemand,
    KernelOperation as KernelOperation,
    Parameter as Parameter,
    Quotient as Quotient,
    demands_of as demands_of,
)
from .kernel_library import (
    DuplicateKernelError as DuplicateKernelError,
    KernelLibrary as KernelLibrary,
    LibraryKernel as LibraryKernel,
    NoKernelError as NoKernelError,
    kernel_name as kernel_name,
)
from .on_demand import OnDemandKernels as OnDemandKernels
