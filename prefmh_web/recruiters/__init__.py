"""The platforms that send people. To add one: write a file like `prolific.py`, and list it here."""

from prefmh_web.recruiters.anybody import ANYBODY
from prefmh_web.recruiters.cloudresearch import CONNECT, MTURK_TOOLKIT
from prefmh_web.recruiters.link import LINK, named
from prefmh_web.recruiters.open import OPEN
from prefmh_web.recruiters.prolific import PROLIFIC
from prefmh_web.recruiters.recruiter import Recruiter
from prefmh_web.recruiters.sona import SONA

RECRUITERS = {each.name: each for each in (ANYBODY, OPEN, PROLIFIC, SONA, CONNECT, MTURK_TOOLKIT, LINK)}
"""By name, in the order in which they are offered."""


def recruiter_by(name: str, parameter: str = "") -> Recruiter:
    """Return a recruiter; where the researcher names the parameter of the person's id, with that parameter.

    Raises:
        KeyError: there is none of that name.
    """
    found = RECRUITERS[name]
    return named(parameter) if found is LINK and parameter else found


__all__ = [
    "ANYBODY",
    "CONNECT",
    "LINK",
    "MTURK_TOOLKIT",
    "OPEN",
    "PROLIFIC",
    "RECRUITERS",
    "SONA",
    "Recruiter",
    "recruiter_by",
]
