"""This folder holds the MAC unit of an engine: LV0 memories, PE arrays, accumulators and their sequencer."""
