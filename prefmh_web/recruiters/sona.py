"""SONA: each sign-up has a code of its own, which is given back for the credit."""

from prefmh_web.recruiters.recruiter import Recruiter

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
