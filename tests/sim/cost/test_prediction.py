"""What the layers of an image take together."""

from hw.image.image import LayerInfo
from sim.cost import Prediction, inference


def layer(**durations):
    return LayerInfo("layer", "conv", [], "y", **durations)


def test_measurements_come_before_estimates():
    layers = [
        layer(estimated_load=50, estimated_compute=100),
        layer(estimated_load=300, estimated_compute=100, estimated_stream=20),
        layer(estimated_load=5, estimated_compute=100, measured_load=8, measured_compute=70),
    ]
    assert inference(layers) == Prediction(100 + 100 + 70, 50 + 320 + 8, 100 + 300 + 70)
    assert inference(layers).cycles == 378


def test_nothing_takes_no_time():
    assert inference([]).cycles == 0
