"""Tells, when jobs of several models share a ring, which earlier job holds the weight window in LV2 of the next one.

An image says how many places earlier, among its own jobs on an engine, the latest job lies that used any of a window.
Where jobs of other models come between, or the job runs on another engine, that distance means nothing: what is kept
here is the job itself, and the distance follows from where it was queued.
"""

from hw.image import Image


def predecessors(image: Image) -> list[int | None]:
    """Return for each job of ``image`` the one that must retire before its prologue may start, or None if no job of the
    same inference used its window."""
    result: list[int | None] = []
    queues: dict[int, list[int]] = {}
    for index, job in enumerate(image.meta.jobs):
        mine = queues.setdefault(job.engine, [])
        known = 0 < job.window_after <= len(mine)
        result.append(mine[len(mine) - job.window_after] if known else None)
        mine.append(index)
    return result
