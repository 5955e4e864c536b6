"""What the researcher is told when something cannot be done now."""


class NotPossible(Exception):  # noqa: N818 - reads as the sentence it starts
    """The change is not possible now; the message says why and what would make it so."""


class Deleted(NotPossible):
    """Somebody deleted the campaign, perhaps in this very moment: there is nothing left to change."""

    def __init__(self) -> None:
        super().__init__("The campaign was deleted, perhaps in another window.")
