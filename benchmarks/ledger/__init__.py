"""The ledger of figures: what every row of every bench measured, at which commit, and which files it ran.

``plan.py`` says what is recorded, ``record.py`` measures it, ``stale.py`` tells which rows no longer hold, and
``pages.py`` writes the tables of README and docs from it. ``docs/figures.md`` says how they are used.
"""
