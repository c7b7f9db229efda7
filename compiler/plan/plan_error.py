"""What is raised where decisions about a model are given and do not do."""

from compiler.ir import CompileError


class PlanError(CompileError):
    """A length for which the plan of another does not do."""


class OtherJobsError(PlanError):
    """A length of which a layer is better cut into other jobs than in the plan."""
