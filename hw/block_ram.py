"""Says which memories go into block RAM, and which need no logic around it."""

#: For ``Memory(attrs=...)``: a wide memory of few rows takes a look-up table per bit and copy otherwise, and what reads
#: these has time. It changes no behaviour.
BLOCK_RAM = {"ram_style": "block"}
#: What is read while the same row is written is not looked at. Otherwise registers and multiplexers beside the block
#: RAM bring back the row as it was.
NO_COLLISION = {"no_rw_check": 1}
