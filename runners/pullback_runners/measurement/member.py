"""A member of a group: one way of executing a case, of one subject, in a process of its own."""

from dataclasses import dataclass

from pullback_runners.measurement.subject import INSTALLED, Subject


@dataclass(frozen=True)
class Member:
    """A program in a group, held by one worker. Two members of one group may be the same program: such twins show the noise."""

    variant: str
    subject: Subject = INSTALLED
    role: str | None = None
    """A name that tells it from the other members; the variant's where none is given."""
    reference: str | None = None
    """The variant that its gradient is compared with where there is no closed form, None for the baseline of the workload."""

    @property
    def name(self) -> str:
        """The name of the member in results."""
        return self.role or self.variant
