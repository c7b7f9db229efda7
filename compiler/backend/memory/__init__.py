"""Where tensors and weights lie: the division of LV2, placement of tensors, the ring of weight windows."""
