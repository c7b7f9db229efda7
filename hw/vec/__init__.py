"""The vector unit of an engine: walker, parameter loader, lanes, write combiner."""
