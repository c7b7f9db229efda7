"""What is raised where decisions about a model are given and do not do."""

from compiler.ir import CompileError


class PlanError(CompileError):
    """A length for which the plan of another does not do."""
