"""Links that sign a researcher in."""

from django.urls import reverse
from sesame.utils import get_query_string


def sign_in_path(user) -> str:
    """Return the path of a link that signs `user` in, valid for a day."""
    return reverse("accounts:sign-in-by-link") + get_query_string(user)
