"""Makes libraries of C and C++: the compilers, what is built once and kept, and what the user sees meanwhile."""
