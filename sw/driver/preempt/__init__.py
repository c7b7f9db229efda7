"""Preemption: halting engines, taking tasks off them, and moving what they hold on chip to DRAM and back."""
