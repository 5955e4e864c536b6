"""Setting up how people come."""

import hashlib

import pytest
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import Study
from prefmh_web.participants.consent import version_of
from tests.support.campaigns import make_draft

PROLIFIC = {"recruiter": "prolific", "votes_each": "40", "codes.completed": "C1", "codes.nothing-left": "C2"}


@pytest.fixture
def draft(researcher):
    return make_draft(researcher)


def save(owner, campaign, **fields) -> str:
    path = reverse("console:participants", args=[campaign.pk])
    return owner.post(path, fields, follow=True).content.decode()


def test_a_draft_is_set_up_and_its_link_shown_once_it_has_started(owner, draft):
    assert "Saved." in save(owner, draft, **PROLIFIC)
    stored = Campaign.objects.get().config.study
    assert (stored.recruiter, stored.votes_each) == ("prolific", 40)
    assert {name: code for name, code in stored.codes.items() if code} == {"completed": "C1", "nothing-left": "C2"}
    assert stored.pay_for("nothing-left") == "full"
    assert stored.pay_for("ended") == "nothing"
    # Left empty, it is the platform's own, whichever that will be.
    assert (stored.way_back, stored.address_back) == ("", "https://app.prolific.com/submissions/complete?cc={code}")
    path = reverse("console:participants", args=[draft.pk])
    assert "when the campaign has started" in owner.get(path).content.decode()
    lifecycle.start(draft)
    for address in (path, draft.get_absolute_url()):
        page = owner.get(address).content.decode()
        assert "Paste this link into Prolific" in page
        assert "?PROLIFIC_PID={{%PROLIFIC_PID%}}&amp;STUDY_ID=" in page


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"recruiter": "anybody", "consent": "Do you agree?"}, "Consent is stored with each person"),
        ({"recruiter": "anybody", "most_active_minutes": "5"}, "This is noted of each person"),
        ({"recruiter": "link", "parameter": "a b"}, "Enter a name of letters"),
        ({"way_back": "javascript:alert(1)"}, "begins with https://"),
        ({"way_back": "https://x.example/?a={prolific}"}, "{prolific} is not known"),
        ({"recruiter": "link", "parameter": "p", "way_back": "https://x.example/{}"}, "{} is not known"),
        ({"way_back": "https://x.example{STUDY_ID}/"}, "only after the host"),
        ({"codes.completed": ""}, "the address to return to has {code}"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_and_nothing_is_saved(owner, draft, fields, message):
    page = save(owner, draft, **PROLIFIC | fields)
    assert message in page
    assert Campaign.objects.get().config.study == Study()


def test_the_version_of_a_consent_text_is_the_hash_of_its_lines(owner, draft):
    save(owner, draft, **PROLIFIC, consent="# Consent\r\n\r\nYes?")
    assert version_of(Campaign.objects.get().config.study.consent) == hashlib.sha256(b"# Consent\n\nYes?").hexdigest()


def test_a_campaign_that_started_without_recruitment_stays_open_to_all(owner, campaign):
    assert "cannot change after the start" in save(owner, campaign, recruiter="prolific", **{"codes.completed": "X"})
    save(owner, campaign, **{"codes.completed": "X"})
    assert Campaign.objects.get().config.study.recruiter == "anybody"
