"""Roofline bounds."""

import pytest

from caesura.profiles import Roofline, layer_roofline, network_roofline
from hw.contract.job import COUNTERS
from hw.contract.params import preset
from hw.image.image import LayerInfo

BASE = preset("base")  # 512 MACs, 16 bytes of DRAM per cycle, 32 vector lanes
NOTHING = dict.fromkeys((name for name, _ in COUNTERS), 0)


def layer(macs=0, inputs=0, weights=0, outputs=0):
    return LayerInfo("l", "conv", [], "y", macs, inputs, weights, outputs)


@pytest.mark.parametrize(
    ("info", "moved", "cycles", "limit"),
    [
        (layer(macs=51200, inputs=64), {"ld2_bytes": 64}, 100, "MAC"),
        (layer(macs=512, inputs=640, weights=320), {"prologue_bytes": 320, "ld2_bytes": 640}, 60, "DRAM"),
        (layer(macs=512, inputs=640, outputs=320), {"ld2_bytes": 640, "st2_bytes": 320}, 60, "DRAM"),
        (layer(macs=512, inputs=640, outputs=320), {"vec_active": 9}, 10, "VEC"),  # all of it in LV2
        (layer(macs=512, inputs=640), {"ld2_bytes": 6400}, 40, "DRAM"),  # fetched ten times: compulsory once
        (layer(inputs=640, outputs=640), {}, 0, "none"),  # a copy inside LV2
    ],
)
def test_layer(info, moved, cycles, limit):
    bound = layer_roofline(BASE, info, NOTHING | moved)
    assert (bound.cycles, bound.limit) == (cycles, limit)


def test_network_sums_resources_not_bounds():
    total = network_roofline([Roofline(mac=100, dram=10), Roofline(mac=10, dram=50)])
    assert (total.mac, total.dram, total.cycles, total.limit) == (110, 60, 110, "MAC")
    assert total.to_dict() == {"cycles": 110, "limit": "MAC", "mac": 110, "dram": 60, "vec": 0}
