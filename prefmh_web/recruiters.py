"""The platforms that send people: how the link of each names them, and how they get back.

To add one: declare it as the others here, and list it in `RECRUITERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Recruiter:
    """A way in which people come.

    Args:
        name: as stored, and in addresses.
        title: what the researcher reads.
        called: what the people whom it sends call it; empty where it has no name.
        person: the parameter of the link that names the person; empty where people come without ids.
        is_open: people come without ids, and each browser is somebody.
        form: what the person's id looks like, as a regular expression of the whole; empty where it may be anything.
        folded: gives ids that mean one person the same spelling.
        session: the parameter that names this visit; empty where there is none.
        study: the parameter that names the study; empty where there is none.
        parameters: for each parameter of the link to paste, what the platform puts its value in for.
        appends: parameters that the platform adds by itself.
        return_address: with {code} and other fields; empty where the researcher must fill it in.
        preview: a parameter and the value that it has when somebody only looks at the study.
        help: what the researcher must know to use it.
        source: the documentation that says so, and when it was read.
    """

    name: str
    title: str
    called: str = ""
    person: str = ""
    form: str = ""
    folded: Callable[[str], str] = str
    session: str = ""
    study: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    appends: tuple[str, ...] = ()
    return_address: str = ""
    preview: tuple[str, str] | None = None
    help: str = ""
    source: str = ""
    is_open: bool = False

    @property
    def knows_people(self) -> bool:
        """True where each person has a part of their own, by an id or by their browser."""
        return bool(self.person) or self.is_open

    def link(self, address: str) -> str:
        """Return the link to paste into the platform, for the address of an invitation."""
        query = "&".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{address}?{query}" if query else address


ANYBODY = Recruiter(
    name="anybody",
    title="Anyone with the link",
    help="Nobody is told apart: the same person in another browser is a new voter.",
)
OPEN = Recruiter(
    name="open",
    title="Open link with a protocol",
    is_open=True,
    help="One link for all, without ids. Consent, the protocol, places and codes work as with a platform, because each "
    "browser is a participant. The same person in another browser, or on another device, is a new one.",
)
PROLIFIC = Recruiter(
    name="prolific",
    title="Prolific",
    called="Prolific",
    person="PROLIFIC_PID",
    form=r"[0-9a-f]{24}",
    folded=str.lower,
    session="SESSION_ID",
    study="STUDY_ID",
    parameters={
        "PROLIFIC_PID": "{{%PROLIFIC_PID%}}",
        "STUDY_ID": "{{%STUDY_ID%}}",
        "SESSION_ID": "{{%SESSION_ID%}}",
    },
    return_address="https://app.prolific.com/submissions/complete?cc={code}",
    help="Paste the link as the study's URL and choose “I'll use URL parameters”. Enter here the completion codes that "
    "you set up in Prolific.",
    source="docs.prolific.com, “The study object”, read on 2026-11-22",
)
# Each sign-up has a code of its own, which is given back for the credit.
SONA = Recruiter(
    name="sona",
    title="SONA",
    called="SONA",
    person="survey_code",
    form=r"[0-9]{1,20}",
    session="survey_code",
    parameters={"survey_code": "%SURVEY_CODE%"},
    help="Paste the link as the study's URL. As the address to return to, paste SONA's client-side completion URL and "
    "replace XXXX at its end by {session_id}. SONA's code is new for each sign-up, so somebody who signs up twice is "
    "two participants.",
    source="SONA Systems, “Integration with online survey products”, read on 2026-11-22",
)
# CloudResearch: Connect, and the toolkit for Amazon Mechanical Turk. The study opens in a tab of its own.
CONNECT = Recruiter(
    name="connect",
    title="CloudResearch Connect",
    called="Connect",
    person="participantId",
    form=r"[0-9A-Za-z-]{6,64}",
    session="assignmentId",
    study="projectId",
    appends=("participantId", "assignmentId", "projectId"),
    help="Connect adds its parameters to the link by itself. Choose “completion code” in Connect and enter the same "
    "code here; or enter Connect's redirect address as the address to return to.",
    source="CloudResearch, “Project Completion”, read on 2026-11-22; its own list of parameters was not found",
)
MTURK_TOOLKIT = Recruiter(
    name="mturk-toolkit",
    title="CloudResearch MTurk Toolkit",
    called="Mechanical Turk",
    person="workerId",
    # Also as the toolkit writes it where it hides Amazon's own.
    form=r"[0-9A-Z_]{5,40}",
    folded=str.upper,
    session="assignmentId",
    study="hitId",
    appends=("workerId", "assignmentId", "hitId"),
    preview=("assignmentId", "ASSIGNMENT_ID_NOT_AVAILABLE"),
    help="In the toolkit's form, under “Query String Parameters”, choose that the worker's, the assignment's and the "
    "HIT's id are added. The study opens in a tab, and people copy the code back. Mechanical Turk's own frame is not "
    "supported.",
    source="CloudResearch MTurk Toolkit, “Query String Parameters”, read on 2026-11-22",
)
# Any other platform: the researcher names the parameter that holds the person's id.
LINK = Recruiter(
    name="link",
    title="Another platform, or links of your own",
    person="participant",
    help="Each person needs a link with their own id, for example …/?participant=17. Other parameters of the link are "
    "kept with it, up to 1,000 characters.",
)
RECRUITERS = {each.name: each for each in (ANYBODY, OPEN, PROLIFIC, SONA, CONNECT, MTURK_TOOLKIT, LINK)}
"""By name, in the order in which they are offered."""


def recruiter_by(name: str, parameter: str = "") -> Recruiter:
    """Return a recruiter; where the researcher names the parameter of the person's id, with that parameter.

    Raises:
        KeyError: there is none of that name.
    """
    found = RECRUITERS[name]
    is_named = found is LINK and parameter
    return replace(LINK, person=parameter, parameters={parameter: "ID"}) if is_named else found
