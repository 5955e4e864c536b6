"""Who may make campaigns. An admin is a superuser; a researcher is in one group; who may see which campaign is
`campaigns/lifecycle/access.py`'s.
"""

from django.contrib.auth.models import Group, User
from django.http import HttpRequest

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
