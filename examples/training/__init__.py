"""What the examples train and quantise their networks with."""
