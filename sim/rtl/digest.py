"""Digests what a simulated design is made from: a known one need not be elaborated again."""

import hashlib
import importlib.metadata
import json
from pathlib import Path

import hw
from hw.contract.params import SocParams

_SIM = Path(__file__).parents[1]
_HW = Path(hw.__file__).parent


def design_digest(params: SocParams) -> str:
    """Return a digest over all sources of ``hw`` and of the simulated DRAM and host, the parameters but their name, and
    Amaranth's version."""
    sources = [*sorted(_HW.rglob("*.py")), _SIM / "dram.py", _SIM / "rtl" / "top.py"]
    fields = params.with_nominal_dram().to_dict()
    del fields["name"]
    digest = hashlib.sha256(json.dumps([fields, importlib.metadata.version("amaranth")]).encode())
    for path in sources:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
