"""Views are what people and programs see of results: tables for terminal, JSON, CSV and HTML; pages, timelines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
