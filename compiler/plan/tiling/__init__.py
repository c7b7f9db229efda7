"""How a layer is cut: tiles, parts of the kernel, parts for the engines, and the estimates that choose among them."""
