"""The layer tables against what is known of the networks."""

from benchmarks.workloads import networks, tables
from benchmarks.workloads.conv import ConvShape


def test_resnet50_convolutions():
    cases = {case.conv: case.count for case in tables.resnet50_convolutions()}
    assert cases[ConvShape(64, 56, 56, 64, kernel=3, stride=1, pad=1)] == 3
    assert cases[ConvShape(256, 14, 14, 256, kernel=3, stride=1, pad=1)] == 5
    assert cases[ConvShape(1024, 14, 14, 2048, kernel=1, stride=2, pad=0)] == 1
    assert sum(cases.values()) == 52  # all convolutions but the first layer
    assert len(cases) == 22


def test_tables_cover_resnet50():
    """What they leave out is the fully connected layer."""
    total = sum(case.macs for case in [*tables.first_layers(), *tables.resnet50_convolutions()])
    assert networks.resnet50().macs - total == 2048 * 1000


def test_first_layer():
    (case,) = tables.first_layers()
    assert case.conv == ConvShape(3, 224, 224, 64, kernel=7, stride=2, pad=3)


def test_depthwise_convolutions():
    cases = tables.depthwise_convolutions()
    assert sum(case.count for case in cases) == 17
    assert all(case.conv.cin == case.conv.cout == case.conv.groups for case in cases)
    strides = [sum(case.count for case in tables.depthwise_convolutions(stride)) for stride in (1, 2)]
    assert strides == [13, 4]
