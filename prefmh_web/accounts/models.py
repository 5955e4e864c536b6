"""Tokens by which programs act for a researcher."""

from django.conf import settings
from django.db import models


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
