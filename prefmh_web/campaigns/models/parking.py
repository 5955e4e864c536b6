"""Steps that nobody is asked about until a researcher has looked. Written only by `engine/parking.py` and
`lifecycle/unparking.py`.
"""

from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.steps import Comparison


class Parking(models.Model):
    """Why a step was parked, and what the researcher did about it: nothing yet, while there is no outcome.

    A step that was tried again may be parked again, and then has another one.
    """

    MOST_WORDS = 500

    class Cause(models.TextChoices):
        SKIPS = "skips", "it was skipped too often"
        NOT_SHOWN = "not-shown", "people report that an object is not shown"

    class Outcome(models.TextChoices):
        TRIED_AGAIN = "tried-again", "tried again"
        ENDED = "ended", "the chain was ended"

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="parkings")
    cause = models.CharField(max_length=9, choices=Cause)
    # How many skips there were, or how many people reported it, since it was opened or tried again.
    count = models.PositiveIntegerField()
    parked_at = models.DateTimeField()
    # Null while it is parked, as `settled_at` is: the constraint below holds the two together.
    outcome = models.CharField(max_length=11, choices=Outcome, null=True)  # noqa: DJ001 - null, as `settled_at`
    settled_at = models.DateTimeField(null=True)
    # Why the researcher has ended the chain. It is part of the record.
    words = models.CharField(max_length=MOST_WORDS, blank=True, default="")

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("comparison",), condition=Q(outcome__isnull=True), name="parking_one_open_per_step"
            ),
            models.CheckConstraint(
                name="parking_outcome_whole",
                condition=Q(outcome__isnull=True, settled_at__isnull=True)
                | Q(outcome__isnull=False, settled_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.comparison} parked: {self.get_cause_display()}"
