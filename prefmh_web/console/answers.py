"""What decides the steps of a campaign, in the words of its page: votes, ratings, scores, or nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerWords:
    """One kind of evidence. How a page shows it of a chain and of a step: `templates/decisions/<evidence>`.

    Args:
        evidence: what the config's rule calls it.
        noun: one of it; empty where there is nothing to count.
        asked_again: why some needed more than one reply of a model.
        warning: what a page says above everything else; empty for nothing.
        table: the file of the export that holds it, where that is not the one that every export has.
    """

    evidence: str
    noun: str
    asked_again: str
    warning: str = ""
    table: str = ""


ANSWERS = {
    answers.evidence: answers
    for answers in (
        AnswerWords("votes", "vote", "needed more than one reply, because a reply could not be read"),
        AnswerWords(
            "ratings",
            "rating",
            "needed more than one reply, or may have, because a reply in the same batch could not be read",
            "Rating baseline: a model rates each object alone. The chains sample from another distribution than votes "
            "on the same questions would.",
            "ratings.csv",
        ),
        AnswerWords("scores", "score", ""),
        AnswerWords("none", "", ""),
    )
}
