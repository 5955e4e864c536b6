"""What researchers note about people. Their words are no part of the record, which says only when there was a note."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants import erasure
from prefmh_web.participants.models import Event


def add(annotator: Annotator, by: User, text: str) -> Event:
    """Store a note on somebody.

    Raises:
        NotPossible: they are forgotten, and nothing may be written about them any more.
    """
    with transaction.atomic():
        # Locked, as forgetting locks it: nobody is forgotten meanwhile.
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        if erasure.done().filter(annotator=annotator).exists():
            raise NotPossible(f"Person {annotator.pk} is forgotten, so nothing is noted about them any more.")
        return Event.objects.create(annotator=annotator, kind=Event.Kind.NOTE, by=by, text=text)
