"""This folder holds the vector unit of an engine: walker, parameter loader, lanes and write combiner."""
