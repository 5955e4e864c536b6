"""What people answer between their votes: trials."""

from __future__ import annotations

import uuid

from django.db import models

from prefmh_web.campaigns.models import Lease, Side
from prefmh_web.participants.models.people import Participation


class Check(models.Model):
    """A trial between two pairs. Its answer is no vote. Written only by `checks.py`."""

    class Kind(models.TextChoices):
        """What is shown; see `sampler/judges/attention.py`."""

        INSTRUCTED = "instructed"
        GOLD = "gold"
        REPEAT = "repeat"

    # Stands in the place of a lease's key on the page.
    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    participation = models.ForeignKey(Participation, models.CASCADE, related_name="checks")
    # After how many votes it came.
    after_votes = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.INSTRUCTED)
    # Whose objects are shown: a pair that they have voted on. Null for a gold pair.
    lease = models.ForeignKey(Lease, models.CASCADE, null=True, related_name="+")
    # The number of the gold pair in the protocol, from 0; null for other kinds.
    gold = models.PositiveSmallIntegerField(null=True)
    # The objects have changed places.
    is_swapped = models.BooleanField(default=False)
    # Empty of a repeat: its answer is neither right nor wrong.
    expected_side = models.CharField(max_length=6, choices=Side, blank=True, default="")
    # Empty of one that is not answered yet, or was skipped.
    chosen_side = models.CharField(max_length=6, choices=Side, blank=True, default="")
    elapsed_ms = models.PositiveIntegerField(null=True)
    shown_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("participation", "after_votes"), name="check_once_after_each_vote"),
        )

    def __str__(self) -> str:
        return f"check {self.key}"

    @property
    def is_passed(self) -> bool | None:
        """Whether the side was chosen that is right; None without an answer, and of a repeat."""
        return self.expected_side == self.chosen_side if self.expected_side and self.chosen_side else None

    def agrees_with(self, voted_side: str) -> bool | None:
        """Return whether a repeat was answered as the vote on its pair was; None without an answer."""
        if self.kind != self.Kind.REPEAT or not self.chosen_side:
            return None
        return (self.chosen_side == voted_side) != self.is_swapped
