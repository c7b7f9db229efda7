"""Makes what users install: a wheel with one importable name."""
