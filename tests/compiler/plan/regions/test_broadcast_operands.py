"""Products with one pixel for all, as of squeeze and excitation, join the convolution that makes that pixel."""

import pytest

from compiler import ir
from hw.contract.params import preset
from tests.support.graphs import GraphBuilder, check

BASE = preset("base")


def scaled(channels: int, images: int, seed: int = 1) -> ir.Graph:
    """A tensor times a pixel that two 1x1 convolutions make of its mean, with a table behind, and a convolution."""
    make = GraphBuilder(seed)
    x = make.conv(make.input((images, 12, 11, 8)), channels, (1, 1))
    mean = make.pool("avg", x, (12, 11), (12, 11))
    pixel = make.conv(make.conv(mean, 16, (1, 1)), channels, (1, 1))
    make.output(make.conv(make.eltwise("mul", x, make.table(pixel)), 48))
    return make.graph


@pytest.mark.parametrize(("channels", "images", "engines"), [(256, 1, 2), (256, 2, 2), (272, 1, 2), (200, 1, 3)])
def test_each_engine_scales_the_channels_whose_factors_it_makes(monkeypatch, channels, images, engines):
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)
    image = check(scaled(channels, images), BASE.replace(engines=engines), engines=engines)
    kinds = [layer.kind for layer in image.meta.layers]
    assert any("conv+table+mul" in kind for kind in kinds), kinds


def test_one_value_for_all_comes_from_outside(monkeypatch):
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)
    make = GraphBuilder(5)
    x = make.conv(make.input((1, 12, 11, 8)), 64, (1, 1))
    value = make.conv(make.pool("avg", x, (12, 11), (12, 11)), 1, (1, 1))
    make.output(make.eltwise("mul", x, value))
    image = check(make.graph, BASE, engines=2)
    assert not any("conv+mul" in layer.kind for layer in image.meta.layers)


@pytest.mark.parametrize("images", [2, 3])
def test_convolutions_of_one_pixel_that_engines_share_by_rows_compute_all_images(monkeypatch, images):
    """All their pixels are one row, though no image has fewer rows for that. A region that left images out would look
    cheap, and be chosen."""
    monkeypatch.setattr("compiler.plan.regions.region_rules.LAYER_TO_LOAD", 4000.0)
    check(scaled(272, images), BASE, engines=2)
