"""Models of the accelerator that execute the same images as the RTL."""
