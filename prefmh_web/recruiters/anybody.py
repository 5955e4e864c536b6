"""A link for everyone, without ids."""

from prefmh_web.recruiters.recruiter import Recruiter

ANYBODY = Recruiter(
    name="anybody",
    title="Anyone with the link",
    help="Nobody is told apart: the same person in another browser is a new voter.",
)
