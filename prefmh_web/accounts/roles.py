"""Who may make campaigns. An admin is a superuser; a researcher is in one group; who may see which campaign is
`campaigns/access.py`'s.
"""

from django.contrib.auth.models import Group

RESEARCHERS = "researchers"


def make_researcher(user) -> None:
    """Let `user` make campaigns of their own."""
    group, _ = Group.objects.get_or_create(name=RESEARCHERS)
    user.groups.add(group)


def is_researcher(user) -> bool:
    """True for researchers and admins."""
    return user.is_active and (user.is_superuser or user.groups.filter(name=RESEARCHERS).exists())
