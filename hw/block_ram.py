"""Says which memories go into block RAM although synthesis finds them too shallow for it."""

#: For ``Memory(attrs=...)``: a wide memory of few rows takes a look-up table per bit and copy otherwise, and what reads
#: these has time. It changes no behaviour.
BLOCK_RAM = {"ram_style": "block"}
