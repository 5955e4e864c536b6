"""Who may make campaigns: a researcher is in one group, an admin is a superuser; and the link that signs one in.

Who may see which campaign is `campaigns/lifecycle/access.py`'s.
"""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.urls import reverse
from sesame.utils import get_query_string

RESEARCHERS = "researchers"


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
