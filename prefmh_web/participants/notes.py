"""What researchers note about people. Their words are no part of the record, which says only when there was a note."""

from __future__ import annotations

from django.contrib.auth.models import User

from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants.models import Event


def add(annotator: Annotator, by: User, text: str) -> Event:
    """Store a note on somebody."""
    return Event.objects.create(annotator=annotator, kind=Event.Kind.NOTE, by=by, text=text)
