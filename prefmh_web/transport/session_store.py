"""Sessions in the database, asked for only by keys that this site could have given.

A cookie is whatever a stranger writes: a key of another form is no session, and reaches no database. PostgreSQL, for
one, fails on a NUL in it.

Signing in gives a session another key, while pictures of a pair may still be on their way under the old one. Their
answers must not take the new cookie away.
"""

import re

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore

# As Django makes them: 32 small letters and digits.
_KEY = re.compile(r"[0-9a-z]{32}", re.ASCII)


class SessionStore(DatabaseStore):
    """Django's own, for keys of its own form; only who ends a session has the browser forget its cookie."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key if _KEY.fullmatch(session_key or "") else None)

    def is_empty(self) -> bool:
        """Say whether this request has ended the session; not where it had ended before, or never was."""
        return self.modified and super().is_empty()
