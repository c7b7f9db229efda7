from .compiled_libraries import Files as Files, Recipe as Recipe, library as library
from .compilers import (
    CC as CC,
    CXX as CXX,
    BuildError as BuildError,
    Source as Source,
    compile_all as compile_all,
    link as link,
    run_tool as run_tool,
)
from .kept_stages import KeptStages as KeptStages, key_of as key_of
from .stages import Stages as Stages
