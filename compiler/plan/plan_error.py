"""Defines what is raised where decisions about a model are given and do not do."""

from compiler.ir import CompileError


class PlanError(CompileError):
    """Is raised where the plan of one length does not do for another."""


class OtherJobsError(PlanError):
    """Is raised where a layer of another length is better cut into other jobs than in the plan."""
