"""Draws what ``RunStats`` tells, with Matplotlib."""

from typing import Any

from sim import distinct_names, visible

_NAME = 32  #: characters of a layer's name, at most
_HEIGHT = 0.25  #: inches of a layer


def plot_layers(stats: Any, axes: Any = None) -> Any:
    """Draw when each layer of an inference ran, as its ``RunStats`` tell: a bar each, whose colour is its utilisation
    of the MAC peak; steps on the CPU are grey. Return the ``matplotlib.axes.Axes``, ``axes`` if that is given. Raises
    ``ImportError`` that says what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("RunStats.plot needs Matplotlib: pip install 'caesura-npu[plot]'") from None
    ran = [layer for layer in stats.layers if layer.engines]
    if axes is None:
        _, axes = plt.subplots(figsize=(8, 1 + _HEIGHT * (len(ran) + bool(stats.on_cpu))), layout="constrained")
    begin = min([layer.start for layer in ran] + [step.begin for step in stats.on_cpu], default=0)
    colours = plt.get_cmap("viridis")
    short = distinct_names([visible(layer.name) for layer in ran], _NAME)
    names = [short[visible(layer.name)] for layer in ran]
    for place, layer in enumerate(ran):
        axes.barh(place, layer.cycles, left=layer.start - begin, color=colours(layer.utilisation))
    if stats.on_cpu:
        spans = [(step.begin - begin, step.end - step.begin) for step in stats.on_cpu]
        axes.broken_barh(spans, (len(ran) - 0.4, 0.8), color="grey")
        names.append("CPU")
    axes.set_yticks(range(len(names)), names, parse_math=False)  # a name may have dollars in it
    axes.invert_yaxis()
    axes.set_xlabel("cycles")
    axes.set_title(repr(stats)[1:-1])
    shades = plt.cm.ScalarMappable(plt.Normalize(0, 100), colours)
    axes.figure.colorbar(shades, ax=axes, label="MAC utilisation, %")
    return axes
