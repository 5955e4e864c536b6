"""CloudResearch: Connect, and the toolkit for Amazon Mechanical Turk. The study opens in a tab of its own."""

from prefmh_web.recruiters.recruiter import Recruiter

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
