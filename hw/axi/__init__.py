"""This folder holds the AXI4 interconnect between the DRAM clients of the SoC and its one memory port."""
