"""This folder holds models of the accelerator that execute the same images as the RTL."""
