"""Plots layers: their cycles against the roofline, and where those were lost."""

from bokeh.models import ColumnDataSource, DataRange1d, FactorRange, HoverTool, NumeralTickFormatter
from bokeh.palettes import Category20
from bokeh.plotting import figure

from caesura.page.page_text import shortened
from caesura.profiles import PARTS, LayerProfile, Profile
from sim import visible

_LINE = 22  #: height of a layer, pixels


def layer_cycles(profile: Profile) -> figure:
    """Return bars of the layers' cycles, in parts: what peak would have taken, and each cause of loss; a mark tells
    where the bound lies."""
    names = _names(profile.layers)
    data: dict[str, list] = {
        "layer": names,
        "whole": [visible(layer.name) for layer in profile.layers],
        "bound": [layer.bound.cycles for layer in profile.layers],
    }
    data["limit"] = [layer.bound.limit for layer in profile.layers]
    data["cycles"] = [layer.cycles for layer in profile.layers]
    data |= {part: [layer.parts[part] for layer in profile.layers] for part in PARTS}
    used = [part for part in PARTS if any(data[part])]
    plot = figure(
        y_range=FactorRange(factors=names[::-1]), x_range=DataRange1d(start=0), height=110 + _LINE * len(names),
        sizing_mode="stretch_width", x_axis_label="cycles, means over the engines",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
    )  # fmt: skip
    source = ColumnDataSource(data)
    colours = ["#2c7fb8", *Category20[20][2:]][: len(used)]
    bars = plot.hbar_stack(used, y="layer", height=0.8, color=colours, source=source, legend_label=used)
    for bar, part in zip(bars, used, strict=True):
        told = [("layer", "@whole"), (part, f"@{part}{{0,0}}"), ("all", "@cycles{0,0}")]
        plot.add_tools(HoverTool(renderers=[bar], tooltips=told))
    marks = plot.scatter("bound", "layer", source=source, marker="dash", angle=1.5708, size=16, color="black",
                         legend_label="roofline")  # fmt: skip
    plot.add_tools(HoverTool(renderers=[marks], tooltips=[("roofline", "@bound{0,0}"), ("limited by", "@limit")]))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.legend.label_text_font_size, plot.legend.spacing = "11px", -4
    plot.add_layout(plot.legend[0], "right")
    return plot


def _names(layers: list[LayerProfile]) -> list[str]:
    """Return names that differ; the plot knows layers by them."""
    seen: dict[str, int] = {}
    found = []
    for layer in layers:
        name = shortened(visible(layer.name))
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
