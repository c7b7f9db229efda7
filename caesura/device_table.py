"""Tells of a device in the table that notebooks show."""

from hw.contract.html_table import html_table
from sw.driver import Device as Driver


def device_table(caption: object, driver: Driver) -> str:
    """Return a table of the models that are loaded on a device."""
    heads = ("model", "engines", "tenant", "layers", "bytes of weights")
    rows = [
        (
            model.name, ", ".join(map(str, model.engines)), model.tenant, len(model.image.meta.layers),
            len(model.image.weights),
        )
        for model in driver.models
    ]  # fmt: skip
    return html_table(caption, heads, rows)
