"""Making, finding and withdrawing the tokens of programs."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from prefmh_web.accounts.models import ApiToken

PREFIX = "prefmh_"
MOST = 50
# Longer than anybody could guess.
_BYTES = 32
_NOTED_EVERY = timedelta(minutes=1)


class TokenLimitError(ValueError):
    """A researcher has as many tokens as one may have."""


def make(owner: User, name: str, scope: ApiToken.Scope) -> tuple[ApiToken, str]:
    """Make a token; return it with what the program shows, which nothing tells again.

    Raises:
        TokenLimitError: the owner has 50 already.
    """
    plain = PREFIX + secrets.token_urlsafe(_BYTES)
    with transaction.atomic():
        # The owner's row is held, so that two at once are counted one after the other.
        User.objects.select_for_update().get(pk=owner.pk)
        if live_tokens(owner).count() >= MOST:
            raise TokenLimitError(f"You have {MOST} tokens. Withdraw one that is not used any more.")
        return ApiToken.objects.create(owner=owner, name=name, scope=scope, digest=digest(plain)), plain


def live_tokens(owner: User) -> QuerySet[ApiToken]:
    """Return the tokens of a researcher that were not withdrawn."""
    return ApiToken.objects.filter(owner=owner, withdrawn_at__isnull=True)


def withdraw(token: ApiToken) -> None:
    """Let no program in by this token any more."""
    ApiToken.objects.filter(pk=token.pk, withdrawn_at__isnull=True).update(withdrawn_at=timezone.now())


def token_shown(plain: str) -> ApiToken | None:
    """Return the token that a program has shown; None if it lets nobody in. Notes that it was used."""
    if not plain.startswith(PREFIX):
        return None
    found = ApiToken.objects.select_related("owner").filter(digest=digest(plain), withdrawn_at__isnull=True).first()
    if found is None or not found.owner.is_active:
        return None
    _note_used(found)
    return found


def _note_used(token: ApiToken) -> None:
    """Note that a token was used, to the minute."""
    now = timezone.now()
    if token.used_at is None or token.used_at < now - _NOTED_EVERY:
        due = Q(used_at__isnull=True) | Q(used_at__lt=now - _NOTED_EVERY)
        ApiToken.objects.filter(due, pk=token.pk).update(used_at=now)


def digest(plain: str) -> str:
    """Return what is stored of a token, in hexadecimal digits."""
    return hashlib.sha256(plain.encode(errors="backslashreplace")).hexdigest()
