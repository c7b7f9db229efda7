"""Makes registers that hold nothing worth a reset."""

from amaranth.hdl import Signal


def data_register(shape=1, *, name: str | None = None) -> Signal:
    """Return a register that keeps what comes, and is looked at only while another one, which is reset, says that there
    is something. Without a reset it needs no wire from there, and the simulator has one case less.

    Registers that are set to zero by logic have a reset anyway: synthesis would make one of that logic, which is slow.
    """
    return Signal(shape, name=name, reset_less=True, src_loc_at=1)
