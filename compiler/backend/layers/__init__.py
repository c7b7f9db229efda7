"""What the back end executes: operators of the graph in the few forms that the units know."""
