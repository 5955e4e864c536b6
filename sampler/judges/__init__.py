"""Judges that need no person: one file a kind."""
