"""This folder holds the way from the RTL to a bitstream for an ECP5: netlist, synthesis, place and route, bitstream, a
module each, and what is told of the result."""
