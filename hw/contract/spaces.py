"""Names the memories that instructions read and write."""

import enum
from typing import Literal


class Space(enum.StrEnum):
    """Names a memory as tables of live ranges, checks and the driver do. The LV1 and LV0 spaces exist once an
    engine."""

    DRAM = "dram"
    LV2 = "lv2"
    LV1 = "lv1"
    LV0_ACT = "lv0_act"  #: activations of the PEs
    LV0_WGT = "lv0_wgt"  #: weights of the PEs
    LV0_ACC = "lv0_acc"  #: accumulators of the PEs


#: Memories that a live range can lie in.
OnChip = Literal[Space.LV1, Space.LV2, Space.LV0_ACT, Space.LV0_WGT, Space.LV0_ACC]
