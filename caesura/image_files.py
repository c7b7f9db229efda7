"""Reads compiled images for a machine."""

from pathlib import Path

from caesura.api import UsageError
from hw.contract.params import DRAM_TIMING, SocParams
from hw.image import Image


def image_for(path: Path, params: SocParams | None) -> Image:
    """Return the image in a file, for the machine with ``params`` (None: for its own). Raises ``ImageError`` for a file
    that is none, and as :func:`check_machine`."""
    image = Image.load(path)
    if params is not None:
        check_machine(path, image, params)
    return image


def check_machine(path: Path, image: Image, params: SocParams) -> None:
    """Raise ``ImageError`` if the ``image`` in a file was built for another machine, and :class:`UsageError` for
    another DRAM than the one for which it has bounds."""
    image.check_params(params)
    for name in DRAM_TIMING:
        if (value := getattr(image.params, name)) != (other := getattr(params, name)):
            raise UsageError(
                f"{path}: was compiled for {name}={value}, and its bounds do not hold for {other}: give the .onnx file "
                f"to run on such a machine, or see what it changes with caesura retime --change {name}={other}"
            )
