"""Views are what people and programs see of results: tables for terminal, JSON, CSV and HTML; pages, timelines."""
