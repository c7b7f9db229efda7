import pytest

from hw.contract.params import preset
from hw.contract.regs import field_value
from sw.driver.queues.registers import RegisterAccess


@pytest.fixture
def regs(soc):
    return RegisterAccess(soc(preset("base")))


def test_read_and_write_by_name(regs):
    assert regs.read("ID") == 0x53454143
    regs.write("E1.RING_BASE", 0x1200)
    assert regs.read("E1.RING_BASE") == 0x1200
    assert regs.read("E0.RING_BASE") == 0


def test_fields(regs):
    regs.write_fields("E0.CONTROL", enable=1, pause=1)
    assert regs.read("E0.CONTROL") == 0b101
    assert regs.read_fields("E0.CONTROL") == {"enable": 1, "reset": 0, "pause": 1}
    assert field_value("FAULT_CODE", unit=3, code=2) == 0x302


def test_unknown_names(regs):
    with pytest.raises(KeyError, match=r"E2\.CONTROL"):
        regs.read("E2.CONTROL")
    with pytest.raises(KeyError, match="no field 'stop'; known are enable, reset, pause"):
        field_value("CONTROL", stop=1)
