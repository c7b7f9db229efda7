"""**Split** in the compiler: runs of operators on parts of an image, where that keeps tensors on chip and pays.

The rooms: ``runs`` finds operators that can be cut together, ``parts`` cuts them (with ``frames`` and
``channels``), ``price`` says what a graph takes, ``choose`` keeps the cuts that pay.
"""
