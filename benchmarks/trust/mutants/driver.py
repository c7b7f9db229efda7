"""Breakages of the driver: what it clears, dumps, restores and believes."""

from benchmarks.trust.mutants.mutant import Mutant

_SCRUB, _PREEMPT, _RESIDUE = "sw/driver/scrub.py", "sw/driver/preempt/", ("residue",)

DRIVER = (
    Mutant(
        "S1", "the accumulators are not cleared between tenants", _SCRUB,
        'fill(Op.LD0, 4 * params.out_channels * params.lv0_acc_rows, {"space": int(Lv0Space.ACC)})', "[]",
        "T", _RESIDUE,
    ),
    Mutant(
        "S2", "an engine is never cleared between tenants", _SCRUB,
        "return self._engines[engine] != model.tenant", "return False",
        "T", _RESIDUE,
    ),
    Mutant(
        "S3", "LV2 is not cleared between tenants", _SCRUB,
        "        if foreign:\n", "        if foreign and False:\n",
        "T", _RESIDUE,
    ),
    Mutant(
        "S4", "the DRAM of an unloaded model is not cleared", _SCRUB,
        "        self._clear_blocks(model.placement.dram_blocks)\n", "        pass\n",
        "T", _RESIDUE,
    ),
    Mutant(
        "S5", "what a dump passes through LV2 belongs to who was there", "sw/driver/memory/allocator.py",
        "user = piece.tenant if {piece.tenant} == passing else _SEVERAL", "user = piece.tenant",
        "T", _RESIDUE,
    ),
    Mutant(
        "S6", "the dump of LV2 is short by 64 bytes", f"{_PREEMPT}copies.py",
        "_store2(program, spill.start, spill.address, spill.size)",
        "_store2(program, spill.start, spill.address, max(1, spill.size - 64))",
        "P2", ("exchange",),
    ),
    Mutant(
        "S7", "a restore is short by 8 bytes", f"{_PREEMPT}state_transfer.py",
        "load(program, Spill(r.memory, r.start, r.size, r.copy)",
        "load(program, Spill(r.memory, r.start, max(1, r.size - 8), r.copy)",
        "P2", ("exchange",),
    ),
    Mutant(
        "S8", "the last row of accumulators is lost if it is not whole", f"{_PREEMPT}suspension.py",
        "-(-(live.offset + live.size) // row) * row)", "(live.offset + live.size) // row * row)",
        "P2", ("exchange",),
    ),
    Mutant(
        "S9", "a restore runs no loads again", f"{_PREEMPT}suspension.py",
        "if point is None or engine not in self.stale or not point.reload:",
        "if point is None or engine not in self.stale or point.reload:",
        "P2", ("exchange",),
    ),
    Mutant(
        "S10", "an engine is not cleared before a task comes back to it", f"{_PREEMPT}preemption.py",
        "if e in suspended.stale and self._jobs.scrubber.must_clear(e, model):", "if e not in suspended.points:",
        "T", _RESIDUE,
    ),
    Mutant(
        "S11", "a completion is taken for that of any job", "sw/driver/queues/job.py",
        'if (entry["job_id"], entry["index"]) == expected and ', "if ",
        "P2", ("faults",),
    ),
    Mutant(
        "S12", "weights that were overwritten count as there", "sw/driver/memory/allocator.py",
        "kept = [p for p in self._pieces if p.tenant == tenant and (p.where, p.digest) in mine]",
        "kept = [p for p in self._pieces if p.digest is not None]",
        "T", ("storms",),
    ),
    Mutant(
        "S13", "a model with requests may be unloaded", "sw/driver/device.py",
        "            if model.users:\n                raise DriverError(",
        "            if model.users and not model.loaded:\n                raise DriverError(",
        "P4", ("storms",),
    ),
    Mutant(
        "S14", "dumps and restores do not wait for what was queued before", f"{_PREEMPT}supervisor.py",
        "self._queues.engines[engine].add(job, barrier=True, hold=True)",
        "self._queues.engines[engine].add(job, barrier=False, hold=True)",
        "P2", ("exchange",),
    ),
    Mutant(
        "S15", "weights that a dump or restore overwrites count as there", f"{_PREEMPT}transfers.py",
        "            self._jobs.lv2.overwritten(operation.written(copy_job))\n", "",
        "P2", ("exchange",),
    ),
    Mutant(
        "S16", "what a restore brings back counts as the weights that were there", f"{_PREEMPT}state_transfer.py",
        "return [*super().written(copy_job), *((r.start, r.end) for r in copy_job.ranges if r.memory == LV2)]",
        "return super().written(copy_job)",
        "T", ("exchange",),
    ),
    Mutant(
        "S17", "weights of a job that was suspended count as there", "sw/driver/models/model_jobs.py",
        "if kept is not None and job.point is None:", "if kept is not None:",
        "T", ("exchange",),
    ),
    Mutant(
        "S18", "engines stay halted when a dump is refused", f"{_PREEMPT}halting.py",
        "verify)\n        except DriverError:\n            self.go_on(queue.number for queue in busy)\n",
        "verify)\n        except DriverError:\n",
        "P3", ("exchange",),
    ),
)  # fmt: skip
