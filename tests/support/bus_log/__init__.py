"""A log of all that driver and run time do to the bus, over fixed scenarios: what a change that keeps behaviour keeps.

``python -m tests.support.bus_log dump FOLDER`` writes the logs as text; with the folders of two checkouts,
``python -m tests.support.bus_log compare BEFORE AFTER`` says at which call each scenario parts. Where a change of the
calls is meant, ``python -m tests.support.bus_log record`` writes the digests that ``tests/sw/test_bus_log.py`` knows.
"""
