"""What the researcher is told when something cannot be done now."""


class NotPossible(Exception):  # noqa: N818 - reads as the sentence it starts
    """The change is not possible now; the message says why and what would make it so."""
