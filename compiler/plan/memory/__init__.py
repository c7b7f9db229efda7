"""Where tensors and weights lie: the division of LV2, placement of tensors, weight windows."""
