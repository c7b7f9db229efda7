"""Prices orders by the order alone, bounds them, and splits operators: what the order search is measured by."""
