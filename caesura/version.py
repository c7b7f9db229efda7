"""Is the version of Caesura, in a checkout and installed."""

__version__ = "0.1.0.dev0"
