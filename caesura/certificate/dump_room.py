"""Finds whether DRAM holds what a scenario may have to dump, beside all that is loaded."""

from collections.abc import Collection

from caesura import api
from caesura.scenario.file_table import ScenarioError
from hw.contract.params import SocParams
from hw.image import Image
from sw.driver import OutOfMemory, room_for_dumps


def check_dump_room(params: SocParams, images: Collection[Image]) -> None:
    """Raise :class:`ScenarioError` unless a device of ``params`` has room for ``images``, and beside them for a dump of
    each in whatever order these come and go."""
    with api.open(params, "model") as device:
        driver = device.driver
        try:
            for image in images:
                driver.load(image, "least_used")
        except OutOfMemory as error:
            raise ScenarioError(f"the models do not fit in DRAM together: {error}") from None
        free = driver.dram.largest_block
    if free < (need := room_for_dumps(params, list(images))):
        enough = 1 << (params.dram_bytes + need - free - 1).bit_length()
        raise ScenarioError(
            f"DRAM has {free:,} bytes left beside the models, and dumps of all of them may need {need:,}, as they come "
            "and go; with less, a request that must leave starts over. Add "
            f"params = {{ dram_bytes = {enough} }} to [machine]"
        )
