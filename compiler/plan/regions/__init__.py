"""The order in which the layers of a model run."""
