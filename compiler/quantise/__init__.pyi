from .quantisation import Feed as Feed, prepared as prepared, quantise as quantise
