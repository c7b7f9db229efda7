"""This folder holds job rings, completions, interrupts and events of one SoC. Nothing here knows what the queued jobs
are for."""
