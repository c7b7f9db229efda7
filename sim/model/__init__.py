"""The fast model is one SoC as events in time, behind the same ``Bus`` as the RTL, with the formulas that estimates
use.

Every file mirrors one of ``hw`` and names it. Times are cycles as the RTL counts them: what happens "at ``t``" is
visible in cycle t. See ``docs/fast-model.md``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
