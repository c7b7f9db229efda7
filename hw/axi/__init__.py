"""AXI4: the interconnect between the DRAM clients of the SoC and its one memory port."""
