"""Sessions as they are now. An open socket holds the one it was opened with, which may have ended since."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from channels.auth import get_user
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from prefmh_web.transport.among import among

_AT_ONCE = 500


def stored(key: str | None) -> SessionBase:
    """Return a session as stored; an empty one where it has ended or never was."""
    store: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return store


def contents(keys: Collection[str | None]) -> dict[str | None, dict[str, Any]]:
    """Return what stands in these sessions now, read together; nothing of one that has ended or never was."""
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    wanted = among("session_key", [key for key in keys if key])
    alive = model.objects.filter(wanted, expire_date__gt=timezone.now())
    return {session.session_key: session.get_decoded() for session in alive}


def take_out(entry: str, values: Collection[object]) -> int:
    """Take an entry out of every stored session in which it has one of these values; return how many these were. A
    session in which nothing else stands has ended.
    """
    store = import_module(settings.SESSION_ENGINE).SessionStore
    found = {}
    # All are looked through: what a session holds is signed, and no index knows it.
    for session in store.get_model_class().objects.iterator(chunk_size=_AT_ONCE):
        holds = session.get_decoded()
        if entry in holds and holds[entry] in values:
            found[session.session_key] = {name: value for name, value in holds.items() if name != entry}
    for key, rest in found.items():
        row = store.get_model_class().objects.filter(session_key=key)
        row.update(session_data=store().encode(rest)) if rest else row.delete()
    return len(found)


async def user_now(key: str | None) -> User | AnonymousUser:
    """Return who is signed in by a session now; nobody after signing out, deactivation or a changed password."""
    user = await get_user({"session": stored(key)})  # type: ignore[typeddict-item]  # all of a scope that it reads
    return user if isinstance(user, User) else AnonymousUser()
