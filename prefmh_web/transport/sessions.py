"""Sessions as they are now. An open socket holds the one it was opened with, which may have ended since."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from channels.auth import get_user
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone


def stored(key: str | None) -> SessionBase:
    """Return a session as stored; an empty one where it has ended or never was."""
    store: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return store


def contents(keys: Collection[str | None]) -> dict[str | None, dict[str, Any]]:
    """Return what stands in these sessions now, read together; nothing of one that has ended or never was."""
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    alive = model.objects.filter(session_key__in=[key for key in keys if key], expire_date__gt=timezone.now())
    return {session.session_key: session.get_decoded() for session in alive}


async def user_now(key: str | None) -> User | AnonymousUser:
    """Return who is signed in by a session now; nobody after signing out, deactivation or a changed password."""
    user = await get_user({"session": stored(key)})  # type: ignore[typeddict-item]  # all of a scope that it reads
    return user if isinstance(user, User) else AnonymousUser()
