"""This folder makes the pages that ``--report`` writes: self-contained, with plots to zoom into and tables to copy."""
