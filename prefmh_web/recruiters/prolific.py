"""Prolific."""

from prefmh_web.recruiters.recruiter import Recruiter

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
    way_back="https://app.prolific.com/submissions/complete?cc={code}",
    help="Paste the link as the study's URL and choose “I'll use URL parameters”. Enter here the completion codes that "
    "you set up in Prolific.",
    source="docs.prolific.com, “The study object”, read on 2026-11-22",
)
