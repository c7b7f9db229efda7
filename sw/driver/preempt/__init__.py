"""This folder preempts: it halts engines, takes tasks off them, and moves what they hold on chip to DRAM and back."""
