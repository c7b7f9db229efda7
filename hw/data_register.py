"""Makes registers that hold nothing worth a reset."""

from amaranth.hdl import Signal


def data_register(shape=1, *, name: str | None = None) -> Signal:
    """Return a register that is looked at only while another one, which is reset, says that it holds something. Without
    a reset it needs no wire from there, and the simulator has one case less."""
    return Signal(shape, name=name, reset_less=True, src_loc_at=1)
