"""One account of time: what instructions, programs, regions and inferences take, typically and at the worst."""
