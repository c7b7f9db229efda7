"""The weight segment of an image."""

import hashlib

from hw.contract.params import SocParams

_DRAM_ALIGN = 64


class WeightSegment:
    """Bytes of the weight segment so far: constant tensors first, then what jobs load, each once."""

    def __init__(self, constants: bytes, params: SocParams, engines: int) -> None:
        self.data = bytearray(constants)
        self._params, self._engines = params, engines
        self._known: dict[bytes, int] = {}

    def append(self, data: bytes | bytearray, engine: int) -> int:
        """Return the address of ``data``; engines that work on different pixels share it.

        What is long begins in a DRAM bank of its engine: engines load their parts of a layer side by side, and where
        they meet in a bank, they close each other's rows with every burst. An engine starts up to a few rows after
        the one before it, as the host queues for one after the other; so its banks lie behind, half as far as they
        could.
        """
        key = hashlib.sha256(data).digest()
        if key not in self._known:
            banks = self._params.dram_banks * self._params.dram_row_bytes
            if len(data) >= banks and self._engines > 1:
                behind = engine * banks // (2 * self._engines) // _DRAM_ALIGN * _DRAM_ALIGN
                self.data += bytes((-behind - len(self.data)) % banks)
            self._known[key] = len(self.data)
            self.data += data + bytes(-len(data) % _DRAM_ALIGN)
        return self._known[key]
