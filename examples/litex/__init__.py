"""The accelerator as a core of LiteX."""
