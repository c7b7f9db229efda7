"""How C and C++ become libraries: the compilers, what is built once and kept, and what the user sees meanwhile."""
