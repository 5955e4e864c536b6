"""Any other platform: the researcher names the parameter that holds the person's id."""

from dataclasses import replace

from prefmh_web.recruiters.recruiter import Recruiter

LINK = Recruiter(
    name="link",
    title="Another platform, or links of your own",
    person="participant",
    help="Each person needs a link with their own id, for example …/?participant=17. Other parameters of the link are "
    "kept with it, up to 1,000 characters.",
)


def named(parameter: str) -> Recruiter:
    """Return `LINK` with the researcher's own name for the parameter."""
    return replace(LINK, person=parameter, parameters={parameter: "ID"})
