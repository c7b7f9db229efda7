"""A board that is not there: the netlist that synthesis makes of it, behind a pseudo-terminal."""
