"""This folder manages DRAM and LV2: allocation, where the segments of an image lie, and sets of bytes."""
