"""The campaign against the driver in C: the driver withstands it, and drivers with a fault do not."""

import re
import shutil
import struct

import pytest

from benchmarks.trust.c_driver import CDriverCampaign, HarnessProcess, builds, guarded_build, sanitized_build
from benchmarks.trust.campaign import round_seed
from benchmarks.trust.flat_files import real_files
from benchmarks.trust.must_reach import C_DRIVER
from examples.c_driver.build import HERE
from hw.image.flat_form import HEADER, PORT

ROUNDS = 2_000  #: of ten files each


def run(campaign: CDriverCampaign, rounds: int) -> None:
    try:
        for number in range(rounds):
            campaign.round(round_seed("c_driver", number))
    finally:
        campaign.close()


@pytest.mark.parametrize("build", [guarded_build, sanitized_build])
def test_a_sample(build):
    made = build()
    if made is None:
        pytest.skip("no compiler of the system has AddressSanitizer: only traps and guard pages were tried")
    campaign = CDriverCampaign(of=[made])
    run(campaign, 150)
    assert campaign.reached[made.means] == 10 * 150 and campaign.reached["run ok"] > 150
    assert sum(name.startswith("refused ") for name in campaign.reached) > 40


def test_every_reason_to_refuse_a_file_is_to_be_reached():
    sources = "".join((HERE / name).read_text() for name in ("check.c", "ports.c"))
    told = re.findall(r'(?:return|NULL :) "(.+)";', sources)
    assert sorted(told) == sorted(name.removeprefix("refused ") for name in C_DRIVER if name.startswith("refused "))


@pytest.mark.slow
def test_many_files():
    print("seen by:", *(build.means for build in builds()))
    campaign = CDriverCampaign()
    run(campaign, ROUNDS)
    assert not {name: least for name, least in C_DRIVER.items() if campaign.reached[name] < least}


def broken(folder, name: str, old: str, new: str):
    """Sources of the driver with a change."""
    for source in HERE.glob("*.[ch]"):
        shutil.copy(source, folder)
    text = (folder / name).read_text()
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new))
    return folder


#: What the device, or the guard pages, see where a check of the driver is missing.
MISSING = {
    "segments of LV2": ("check.c", "port->segment > 5", "port->segment > 7", "which are not? .*model"),
    "segments that are no tensors'": ("check.c", "port->segment < 2 || ", "", "which are not? .*model"),
    "offsets of tensors": ("ports.c", "(uint64_t)port->offset + port->bytes > size", "0", "which are not? .*model"),
    "the end of a relocation": ("check.c", "entry->byte + 8 >", "entry->byte >", "the driver died"),
    "limits of jobs": ("check.c", "limits[i] > sizes[i]", "0", "a job may use"),
    "limits of jobs by one byte": ("check.c", "limits[i] > sizes[i]", "limits[i] > sizes[i] + 1", "a job may use"),
}  # fmt: skip
ORDINARY = "the end of a relocation"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == ORDINARY else pytest.mark.slow) for name in MISSING]
)
def test_a_missing_check_is_seen(tmp_path, name):
    file, old, new, told = MISSING[name]
    build = guarded_build(broken(tmp_path, file, old, new))
    with pytest.raises(AssertionError, match=told):
        run(CDriverCampaign(of=[build]), ROUNDS)


#: Of the last port, an output: numbers that overflow without a check, in a subtraction or in the user's array.
OVERFLOWS = {
    "zero points": ("zero_point < low || zero_point > low + 255", "0", {"zero_point": 1 << 31}),
    "types of arrays": ("port->given == port->stored ? NULL", "1 ? NULL", {"quantise": 0, "given": 0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OVERFLOWS)
@pytest.mark.parametrize("make", [guarded_build, sanitized_build])
def test_an_overflow_ends_the_driver(tmp_path, name, make):
    old, new, change = OVERFLOWS[name]
    file = bytearray(real_files()[0])
    header = HEADER.unpack(bytes(file[: HEADER.size]))
    at = header["port_table"] + (header["inputs"] + header["outputs"] - 1) * PORT.size
    port = PORT.unpack(bytes(file[at : at + PORT.size])) | change
    if not port["quantise"]:  # 64 bytes for a user who has eight
        port |= {"stored": 4, "axes": 1, "extent0": 8, "stride0": 1, "elements": 8, "bytes": 64, "offset": 0}
        struct.pack_into("<I", file, HEADER[f"size{port['segment']}"].offset, 64)
    file[at : at + PORT.size] = PORT.pack(**port)
    build = make(broken(tmp_path, "ports.c", old, new))
    if build is None:
        pytest.skip("no compiler of the system has AddressSanitizer")
    driver = HarnessProcess(build)
    try:
        assert driver.run(real_files()[0], header["params"]).run == "ok"
        with pytest.raises(AssertionError, match="the driver died"):
            driver.run(bytes(file), header["params"])
    finally:
        driver.close()


TOLD_APART = "an axis without elements"  #: which strides lead beyond, too: without this check that is the reason


@pytest.mark.slow
def test_each_check_is_seen_to_be_missing(tmp_path):
    """Whatever a check is for: without it a file is loaded that must not be."""
    unseen = []
    for name in ("check.c", "ports.c"):
        for line in re.findall(r"\n( +if \([^;]*?\)\s+return \".+\";)", (HERE / name).read_text()):
            if TOLD_APART in line:
                continue
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            build = (sanitized_build if sanitized_build() else guarded_build)(broken(folder, name, line, ""))
            try:
                run(CDriverCampaign(of=[build]), 600)
            except AssertionError:
                continue
            unseen.append(line)
    assert not unseen
