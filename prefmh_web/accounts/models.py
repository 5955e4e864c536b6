"""Who may make campaigns: a researcher is in one group, an admin is a superuser; the link that signs one in; the
sessions of browsers; and tokens by which programs act for a researcher: made, found and withdrawn.

Who may see which campaign is `campaigns/lifecycle/access.py`'s.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from sesame.utils import get_query_string

RESEARCHERS = "researchers"
PREFIX = "prefmh_"
MAX_TOKENS = 50
# Longer than anybody could guess.
_BYTES = 32
_NOTED_EVERY = timedelta(minutes=1)
# As Django makes them: 32 small letters and digits.
_SESSION_KEY = re.compile(r"[0-9a-z]{32}", re.ASCII)


class SignedInRequest(HttpRequest):
    """The type of what a view behind `login_required` gets; nobody makes one."""

    user: User


def researchers(database: str = "default") -> Group:
    """Return the group of researchers."""
    return Group.objects.using(database).get_or_create(name=RESEARCHERS)[0]


def make_researcher(user) -> None:
    """Let `user` make campaigns of their own."""
    user.groups.add(researchers())


def is_researcher(user) -> bool:
    """True for researchers and admins."""
    return user.is_active and (user.is_superuser or user.groups.filter(name=RESEARCHERS).exists())


def sign_in_path(user) -> str:
    """Return the path of a link that signs `user` in, valid for a day."""
    return reverse("accounts:sign-in-by-link") + get_query_string(user)


class SessionStore(DatabaseStore):
    """Sessions in the database, asked for only by keys that this site could have given.

    A cookie is whatever a stranger writes: a key of another form is no session, and reaches no database. PostgreSQL,
    for one, fails on a NUL in it.
    """

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key if _SESSION_KEY.fullmatch(session_key or "") else None)

    def is_empty(self) -> bool:
        """Say whether this request has ended the session; not where it had ended before, or never was.

        Signing in gives a session another key, while pictures of a pair may still be on their way under the old one.
        Their answers must not take the new cookie away.
        """
        return self.modified and super().is_empty()


class TokenLimitError(ValueError):
    """A researcher has as many tokens as one may have."""


class ApiToken(models.Model):
    """What a program shows instead of a password. Only a hash of it is stored, so nobody can read it here again."""

    class Scope(models.TextChoices):
        READ = "read", "read: see campaigns and download their records"
        RUN = "run", "run: also create, start, pause and extend campaigns"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.READ)
    # SHA-256 of the token, in hexadecimal digits. It is random and long, so no slower hash is needed.
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # To the minute: a program may call ten times a second.
    used_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return self.name

    @property
    def may_run(self) -> bool:
        """True where the token may change campaigns."""
        return self.scope == self.Scope.RUN

    @classmethod
    def make(cls, owner: User, name: str, scope: str) -> str:
        """Make a token; return what the program shows, which nothing tells again.

        Raises:
            TokenLimitError: the owner has 50 already.
        """
        plain = PREFIX + secrets.token_urlsafe(_BYTES)
        with transaction.atomic():
            # The owner's row is held, so that two at once are counted one after the other.
            User.objects.select_for_update().get(pk=owner.pk)
            if cls.live_of(owner).count() >= MAX_TOKENS:
                raise TokenLimitError(f"You have {MAX_TOKENS} tokens. Withdraw one that is not used any more.")
            cls.objects.create(owner=owner, name=name, scope=scope, digest=_digest(plain))
        return plain

    @classmethod
    def live_of(cls, owner: User) -> QuerySet[ApiToken]:
        """Return the tokens of a researcher that were not withdrawn."""
        return cls.objects.filter(owner=owner, withdrawn_at__isnull=True)

    @classmethod
    def shown(cls, plain: str) -> ApiToken | None:
        """Return the token that a program has shown; None if it lets nobody in. Notes that it was used."""
        if not plain.startswith(PREFIX):
            return None
        live = cls.objects.select_related("owner").filter(withdrawn_at__isnull=True, owner__is_active=True)
        if found := live.filter(digest=_digest(plain)).first():
            found._note_used()
        return found

    def withdraw(self) -> None:
        """Let no program in by this token any more."""
        ApiToken.objects.filter(pk=self.pk, withdrawn_at__isnull=True).update(withdrawn_at=timezone.now())

    def _note_used(self) -> None:
        """Note that it was used, to the minute."""
        now = timezone.now()
        if self.used_at is None or self.used_at < now - _NOTED_EVERY:
            due = Q(used_at__isnull=True) | Q(used_at__lt=now - _NOTED_EVERY)
            ApiToken.objects.filter(due, pk=self.pk).update(used_at=now)


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode(errors="backslashreplace")).hexdigest()
