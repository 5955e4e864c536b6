"""What a test saw a server do with a field of a request."""

from dataclasses import dataclass

from django.db import models


class Effect(models.TextChoices):
    """What a server does with a field."""

    OBEYED = "obeyed"
    REFUSED = "refused"
    IGNORED = "ignored"
    UNTOLD = "cannot be told"


@dataclass(frozen=True)
class Seen:
    """What was seen of one field, in words, and how many requests it took."""

    field: str
    effect: str
    evidence: str
    requests: int
