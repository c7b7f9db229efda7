"""A driver in C99 that knows the hardware from ``docs/caesura.h`` alone, run against a simulated device."""
