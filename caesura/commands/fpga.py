"""Defines ``caesura fpga``, which takes the accelerator or one of its blocks to an FPGA."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from caesura import api
from caesura.commands.options import Json, ParamsFile, Preset, Set
from caesura.machines import machine
from caesura.views import ColumnTable, complain, json_text, say, tell, write
from hw.contract.params import SocParams

#: Where nothing is asked for: a machine goes to a board that could hold it, a block to the smallest part.
_BOARD, _PART = "ecp5-evn", "lfe5um5g-25f"
_TARGET, _VIVADO_CLOCK = 100.0, 25.0  #: MHz
_BAUD = 1_000_000


def fpga(
    preset: Preset = None,
    params: ParamsFile = None,
    changes: Set = None,
    board: Annotated[
        str | None, typer.Option("--board", help=f"a board or a part, see docs/fpga.md (default: {_BOARD})")
    ] = None,
    block: Annotated[
        str | None, typer.Option("--block", help=f"one block alone, see docs/fpga.md (default part: {_PART})")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="place and route with N seeds")] = 1,
    first: Annotated[int, typer.Option("--first-seed", min=1, max=1_000_000, help="the first of the seeds")] = 1,
    target: Annotated[
        float | None,
        typer.Option(
            "--target", min=1, max=1000, help="clock, in MHz (default: 100; of --serial the board's, of Vivado's 25)"
        ),
    ] = None,
    multipliers: Annotated[
        int | None, typer.Option("--multipliers", min=0, help="how many it may take (default: all of the part)")
    ] = None,
    placer: Annotated[
        str | None, typer.Option("--placer", help="nextpnr's placer: static (default of machines) or heap (of blocks)")
    ] = None,
    router: Annotated[
        str | None, typer.Option("--router", help="nextpnr's router: router2 (default of machines) or router1")
    ] = None,
    spacing: Annotated[
        int | None,
        typer.Option("--spacing", min=0, help="leave each N-th row empty, 0 for none (default of machines: by room)"),
    ] = None,
    rip_up: Annotated[
        bool, typer.Option("--rip-up", help="route again what is too slow for the target: one that can be reached")
    ] = False,
    anneal: Annotated[
        bool, typer.Option("--anneal", help="shorten paths and wires of the placement before it is routed")
    ] = False,
    serial: Annotated[
        bool, typer.Option("--serial", help="a machine to use: with memory, and a serial line on the board's pins")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="of --serial: block for block RAM, or sdram (default: the first with room)"),
    ] = None,
    clock: Annotated[
        float | None, typer.Option("--clock", help="of --serial, in MHz, made by a PLL (default: the oscillator's)")
    ] = None,
    area: Annotated[bool, typer.Option("--area", help="synthesis alone, and its cells by module")] = False,
    depth: Annotated[int, typer.Option("--depth", min=0, max=8, help="levels of modules, of --area and --report")] = 3,
    vivado: Annotated[
        str | None, typer.Option("--vivado", help="write a Vivado project for this board: arty-a7-100; needs --output")
    ] = None,
    logic: Annotated[
        float | None,
        typer.Option("--logic", min=1, max=100, help="fewest look-up tables within NS of logic (default: the fastest)"),
    ] = None,
    baud: Annotated[
        int | None, typer.Option("--baud", min=1, help="of the serial line of --serial and --vivado (default: 1000000)")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="folder for design.bit and manifest.json, or for the project")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="write a page with floor plan, area and paths (.html)")
    ] = None,
    as_json: Json = False,
) -> None:
    """Synthesise, place and route for an ECP5: clock, area, worst paths by source line, bitstream. Or write a Vivado
    project of a whole board."""
    hardware = machine(preset, params, changes or ()) or api.resolve("tiny")
    if vivado is not None:
        given = {"--board": board, "--block": block, "--seeds": seeds > 1, "--first-seed": first > 1,
                 "--multipliers": multipliers is not None, "--placer": placer, "--router": router,
                 "--spacing": spacing is not None, "--logic": logic is not None, "--serial": serial, "--rip-up": rip_up,
                 "--anneal": anneal,
                 "--memory": memory, "--clock": clock is not None, "--area": area, "--report": page}  # fmt: skip
        if beside := [flag for flag, there in given.items() if there]:
            raise api.UsageError(f"--vivado writes a project, and synthesises nothing: leave out {', '.join(beside)}")
        _write_project(hardware, vivado, target, baud, output, as_json=as_json)
        return
    if baud is not None and not serial:
        raise api.UsageError("--baud is of a serial line: ask for one with --serial or --vivado, or leave it out")
    for flag, asked in (("--memory", memory), ("--clock", clock)):
        if asked is not None and not serial:
            raise api.UsageError(f"{flag} is of a machine to use: ask for one with --serial, or leave it out")
    if serial and block:
        raise api.UsageError("--serial is of a whole machine: leave out --block")
    if spacing == 1:
        raise api.UsageError("--spacing 1 leaves every row empty, and no place for anything: 0 for none, 2 for half")
    if output is not None and area:
        raise api.UsageError("--area ends with synthesis, so there is no bitstream for --output")
    from caesura.fpga import boards, flow, manifest, netlist, routing, tables, tools  # loads Amaranth
    from caesura.fpga.area import by_module
    from caesura.fpga.board_setup import board_setup
    from caesura.fpga.synthesis import top_of
    from sim.toolchain import Stages

    usual = flow.BLOCK_TOOLS if block else flow.MACHINE_TOOLS
    chosen_placer = _one_of("--placer", placer, routing.PLACERS, usual[0])
    chosen_router = _one_of("--router", router, routing.ROUTERS, usual[1])
    if rip_up and chosen_router != routing.ROUTERS[1]:
        raise api.UsageError(f"--rip-up is of {routing.ROUTERS[1]}: --router {routing.ROUTERS[1]}, or leave it out")
    tools.require("synthesis", *(() if area else ("place and route",)))
    netlist.known(block)
    on = board or (_PART if block else _BOARD)
    part = boards.serial_part(on) if serial else boards.part(on)
    setup = board_setup(on, part, hardware.dram_bytes, baud or _BAUD, memory, clock) if serial else None
    aim = target or (setup.clock if setup else _TARGET)
    stages = Stages(subject="fpga", announcement="from RTL to the part; each stage is kept once it is done")
    with stages.stage(f"{hardware.name}: netlist", size=1, seconds=5):
        design = netlist.on_pins(hardware, setup) if setup else netlist.elaborated(hardware, block)
    bound = None if logic is None else round(1000 * logic)
    work = flow.Flow(part, aim, stages, multipliers, chosen_placer, chosen_router, spacing or 0, bound, rip_up, anneal)
    mapped = work.mapped(design)
    if spacing is None and not block and not area:
        work = work.with_room(mapped)
    about = manifest.manifest(design, hardware, work, () if area else range(first, first + seeds), block, setup)
    title = f"{design.name} on {part.device}, package {part.package}, speed {part.speed}, aimed at {aim:g} MHz"
    if area or page is not None:
        areas = tables.area_table(by_module(top_of(mapped), design.modules, depth))
    if area:
        _show_area(about, title, areas, page, as_json=as_json)
        return
    result, bits = work.run(design, about["seeds"])
    if output is not None:
        flow.write_files(output, about, bits)
    shown = (tables.clock_table(result), tables.use_table(result), tables.path_table(result["paths"]))
    if page is not None:
        from caesura.views import write_fpga_page  # loads the plotting library

        write_fpga_page(page, title, shown, areas, result["floor"])
    if as_json:
        write(json_text({"manifest": about, **result}))
    else:
        say(title)
        tell(Group(*(table.rich() for table in shown)))
    if output is not None and not as_json:
        say(f"{output / 'design.bit'}: {len(bits):,} bytes")
    if setup and (reached := result["fmax"]["best"]) < setup.clock:
        source = "the PLL" if setup.pll else on
        complain(
            f"warning: it reaches {reached:g} MHz, and {source} gives it {setup.clock:g}: its results can be wrong"
        )


def _show_area(about: Mapping[str, Any], title: str, areas: ColumnTable, page: Path | None, *, as_json: bool) -> None:
    if page is not None:
        from caesura.views import write_fpga_page  # loads the plotting library

        write_fpga_page(page, title, (), areas, None)
    if as_json:
        write(json_text({"manifest": about, "area": areas.fields()}))
    else:
        tell(areas.rich())


def _one_of(flag: str, given: str | None, known: Sequence[str], usual: str) -> str:
    """Return what was ``given``, else what is ``usual``. Raises :class:`caesura.api.UsageError` for what is not
    ``known``."""
    if given is not None and given not in known:
        raise api.UsageError(f"{flag} {given}: must be {' or '.join(known)}")
    return given or usual


def _write_project(
    hardware: SocParams, board: str, clock: float | None, baud: int | None, output: Path | None, *, as_json: bool
) -> None:
    from caesura.fpga import vivado  # loads Amaranth

    if output is None:
        raise api.UsageError("--vivado writes files: name their folder with --output")
    about = vivado.board(board)
    files = vivado.project(hardware, about, clock or _VIVADO_CLOCK, baud or _BAUD)
    vivado.write_project(output, files)
    if as_json:
        write(json_text({"folder": str(output), "files": sorted(files), "part": about.part}))
    else:
        say(f"{output / 'project.tcl'}: vivado -mode batch -source project.tcl makes top.bit for {about.part}")
