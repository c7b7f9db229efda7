"""What a mutant is: one small breakage of the product, which a campaign must find."""

from dataclasses import dataclass

#: What ``docs/security.md`` promises, by what mutants call it: the text that says so there.
PROMISES = {
    "P1": "1. **Memory.**",
    "P2": "2. **Results.**",
    "P3": "3. **Others go on.**",
    "P4": "4. **Books.**",
    "T": "## Between tenants",
    "L": "## Bounds",
}


@dataclass(frozen=True)
class Mutant:
    """``old``, which stands exactly once in ``file``, becomes ``new``; that breaks ``promise``, and a round of one of
    ``campaigns`` must fail. ``must_observe``: what rounds must have reached for a survivor to say anything."""

    name: str
    what: str
    file: str
    old: str
    new: str
    promise: str
    campaigns: tuple[str, ...]
    must_observe: str = ""

    @property
    def is_hardware(self) -> bool:
        """Whether it changes what a simulator of the RTL is built from. Campaigns then run in the clean checkout."""
        return self.file.startswith("hw/") and not self.file.startswith(_SOFTWARE)

    def applied(self, text: str) -> str:
        """``text`` of the file with the breakage. Raises :class:`CodeMoved`."""
        found = text.count(self.old)
        if found != 1:
            raise CodeMoved(f"mutant {self.name}: its place stands {found} times in {self.file}, not once: move it")
        return text.replace(self.old, self.new)


class CodeMoved(ValueError):
    """The place of a mutant is not in the code any more, or stands there twice."""


#: Files of ``hw`` that software runs on, and no hardware is built from.
_SOFTWARE = "hw/image/"
