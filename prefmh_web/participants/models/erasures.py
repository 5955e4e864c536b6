"""Who is to be forgotten, and since when they are."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from prefmh_web.campaigns.models import Annotator


class Erasure(models.Model):
    """The wish that nothing says any more who an annotator is. Written only by `erasure.py`."""

    annotator = models.OneToOneField(Annotator, models.CASCADE, related_name="+")
    requested_at = models.DateTimeField(default=timezone.now)
    # Null while it waits for what they are to be paid.
    done_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"erasure of {self.annotator_id}"
