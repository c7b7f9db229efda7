"""The software on the host: driver, run time and kernels chosen at run time. Each has a front of its own."""
