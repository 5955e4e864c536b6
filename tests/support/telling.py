"""People of a study who tell of themselves wherever they can, and what others write about them."""

from django.test import Client

from prefmh_web.campaigns.models import Annotator, Campaign, EndReason
from prefmh_web.participants import consent, exclusion
from prefmh_web.participants.models import Answer, Participation
from tests.participants.test_checks import answer_check, vote_until_check
from tests.participants.test_stages import go_on
from tests.support.recruited import CODES, pair_of, prolific, recruited_campaign, vote
from tests.support.stack import invitation_path, make_recipe, wait_until_idle

PROTOCOL = {
    "questions": [
        {"name": "home", "text": "Where do you live?", "kind": "text"},
        {"name": "comment", "text": "Anything else?", "kind": "text", "is_last": True},
    ],
    "practice": [
        {"left": "A dark night.", "right": "A bright day.", "answer": "left", "if_wrong": "Night is darker."},
    ],
    "check_share": 0.5,
}
TEXT = "You compare texts."
ALL_CODES = CODES | {"withdrawn": "W1THDREW", "ended": "ENDED1"}
KINDS = ("id", "session", "parameter", "answer", "comment", "report", "reason")


def values_of(name: str) -> dict[str, str]:
    """Return what somebody leaves, or others write about them: in each place another string."""
    return {kind: f"ZZ{kind}of{name}ZZ" for kind in KINDS}


def study_of(owner, **options) -> Campaign:
    one_judge = make_recipe(judges=[{"question": "Which is darker?", "budget": 1}], chains=3, steps=20)
    usual = {"codes": ALL_CODES, "recipe": one_judge, "protocol": PROTOCOL, "consent": TEXT}
    return recruited_campaign(owner, **usual | options)


def come(study, said: dict[str, str], votes: int = 1) -> Client:
    """Come as a platform sends somebody, and leave a string in every place up to the votes."""
    browser = Client()
    browser.get(invitation_path(study), prolific(said["id"], said["session"]) | {"city": said["parameter"]})
    agree = {"consent": "agree", "version": version_now()}
    assert browser.post(invitation_path(study), agree).status_code == 302
    go_on(browser, study, {"stage": "questions", "answer-home": said["answer"]})
    go_on(browser, study, {"stage": "practice", "answer-step": "0", "answer-choice": "left"})
    go_on(browser, study, {"stage": "practice", "answer-step": "0-answered"})
    vote_until_check(browser, study)
    answer_check(browser, study)
    key = pair_of(browser, study)
    report = {"reason": "other", "words": said["report"]}
    assert browser.post(f"{invitation_path(study)}report/{key}/", report).status_code == 302
    wait_until_idle()
    for _ in range(votes):
        if pair_of(browser, study):
            vote(browser, study)
    return browser


def version_now() -> str:
    return consent.version_of(TEXT)


def person_in(study, said) -> Annotator:
    part = Participation.objects.get(campaign=study, participant__external_id=said["id"])
    return Annotator.objects.select_related("campaign").get(pk=part.annotator_id)


def write_about(study, said) -> Annotator:
    """End somebody's part with a reason, and give them a comment of their own."""
    person = person_in(study, said)
    exclusion.exclude(person, study.owner, exclusion.Grounds(EndReason.CARELESS, said["reason"]), is_paid=False)
    wait_until_idle()
    # As somebody does who comes to the last questions.
    Answer.objects.create(participation_id=part_of(person).pk, name="comment", answer=said["comment"])
    return person


def part_of(person: Annotator) -> Participation:
    return Participation.objects.get(annotator=person)


def found_in(content: bytes, said: dict[str, str]) -> set[str]:
    return {kind for kind, value in said.items() if value.encode() in content}
