"""A link for everyone whose people pass the stages: each browser is somebody."""

from prefmh_web.recruiters.recruiter import Recruiter

OPEN = Recruiter(
    name="open",
    title="Open link with a protocol",
    is_open=True,
    help="One link for all, without ids. Consent, the protocol, places and codes work as with a platform, because each "
    "browser is a participant. The same person in another browser, or on another device, is a new one.",
)
