"""Relocatable objects: each layer compiled alone, to be linked with the others."""
