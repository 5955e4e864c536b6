"""A text of consent to begin with. What is in brackets is the researcher's to fill in."""

import re

CONSENT = """\
# Taking part in this study

**What it is about.** [what you study, in one sentence]

**What you do.** You see two things at a time and choose one of them. It takes about [minutes] minutes. There is no
right or wrong answer.

**It is your choice.** You can stop at any time with the link “Withdraw from this study”, and you need not say why.
Choices that you have made by then stay in the record, because later steps stand on them.

**What is recorded.** Your choices, how long each took, whether the two stood side by side on your screen, whether your
browser translated the page, and what you answer about yourself. The ids under which you were sent, yours, the study's
and those of your visits, are kept apart from your choices, only to pay you, and are deleted afterwards.

**Who is responsible.** [your name and institution]. Questions: [your e-mail address].

If you are at least 18 years old, have read this and want to take part, press “I agree”.
"""
_PLACES = re.findall(r"\[[^\]]+\]", CONSENT)


def left_open_in(text: str) -> list[str]:
    """Return the places of the template that nobody has filled in."""
    return [place for place in _PLACES if place in text]
