"""The fast model: one SoC as events in time, behind the same ``Bus`` as the RTL, from the same formulas as estimates.

Every file mirrors one of ``hw`` and names it. Times are cycles as the RTL counts them: what happens "at ``t``" is
visible in cycle t. See ``docs/fast-model.md``.
"""
