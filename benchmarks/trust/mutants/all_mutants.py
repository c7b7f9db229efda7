"""All mutants by name."""

from benchmarks.trust.mutants.c_driver import C_DRIVER
from benchmarks.trust.mutants.driver import DRIVER
from benchmarks.trust.mutants.loader import LOADER
from benchmarks.trust.mutants.mutant import Mutant
from benchmarks.trust.mutants.rtl import RTL
from benchmarks.trust.mutants.runtime import RUNTIME

MUTANTS: dict[str, Mutant] = {mutant.name: mutant for mutant in (*RTL, *LOADER, *DRIVER, *RUNTIME, *C_DRIVER)}
