"""The pages of a campaign's people: what researchers see of them, and what they may do.

Setting up how people come.

Panels on the researcher's pages: the setup and what it refuses, and what is not possible after Start.
"""

import hashlib
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import (
    Campaign,
    Chain,
    Comparison,
    Event,
    Lease,
    Membership,
    Side,
    Vote,
    Voter,
    number_of,
)
from prefmh_web.config import Study
from prefmh_web.participants.consent import version_of
from prefmh_web.participants.models import AttentionCheck, Participant, Participation
from prefmh_web.participants.people import fast_votes, people_of
from tests.console.test_pages import form
from tests.participants.test_checks import OFTEN
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, link_of, make_draft, panel_campaign, sit_down
from tests.support.people import (
    answer_check,
    arrive,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    vote,
    vote_until_check,
)
from tests.support.process import wait_until_idle
from tests.support.records import everything_in, export_to, happened, table


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher)


@pytest.fixture
def manager(django_user_model):
    return django_user_model.objects.create_user("mona")


def people_page(browser, campaign, **query):
    return browser.get(reverse("console:people", args=[campaign.pk]), query)


def numbers(browser, campaign, **query) -> list[int]:
    return [person.number for person in people_page(browser, campaign, **query).context["page"]]


def at(name: str, campaign, voter=None) -> str:
    voter = voter or Voter.objects.earliest("pk")
    return reverse(f"console:{name}", args=[campaign.pk, number_of(voter)])


def test_right_answers_of_gold_pairs_are_the_owners_until_the_end(owner, researcher, manager):
    gold = {"first": "A dark night.", "second": "A bright day.", "answer": "first"}
    study = recruited_campaign(researcher, protocol={"gold": [gold], "gold_share": 0.1})
    access.add_member(study, "mona", Membership.Role.MANAGER)
    for status, is_told in (("running", False), ("finished", True)):
        Campaign.objects.filter(pk=study.pk).update(status=status)
        page = people_page(browser_of(manager), study).content.decode()
        assert "A dark night." in page
        assert ("✓" in page) == is_told
        assert "✓" in people_page(owner, study).content.decode()


def test_each_person_has_a_row_with_what_they_gave(owner, researcher):
    study = recruited_campaign(researcher, protocol=OFTEN)
    anna = arrive(study, prolific("anna"))
    vote_until_check(anna, study)
    answer_check(anna, study)
    for elapsed_ms, side in ((1000, "first"), (2000, "second"), (9000, "second")):
        fields = {"choice": side, "lease": str(pair_of_votes(anna, study)), "elapsed_ms": str(elapsed_ms)}
        anna.post(f"{invitation_path(study)}vote/", fields)
        wait_until_idle()
    anna.post(f"{invitation_path(study)}vote/", {"choice": "skip", "lease": str(pair_of_votes(anna, study))})
    ben = arrive(study, prolific("ben"))
    pair_of(ben, study)
    [first, second] = people_of(study)
    votes = Vote.objects.filter(voter=first.voter)
    assert (first.votes, first.first) == (votes.count(), votes.filter(chosen_side="first").count())
    assert (first.skips, first.median_ms) == (1, 2000)
    passed = sum(check.is_passed is True for check in AttentionCheck.objects.all())
    assert (first.checks_passed, first.checks_failed) == (passed, 0)
    assert (second.votes, second.skips, second.median_ms, second.first_percent) == (0, 0, None, None)
    page = people_page(owner, study).content.decode()
    assert "2.0 s" in page
    assert "anna" in page


def pair_of_votes(browser, campaign):
    """Return the key of the next pair, once the checks before it are passed."""
    while (key := pair_of(browser, campaign)) is None:
        answer_check(browser, campaign)
    return key


def test_managers_see_numbers_only_and_nobody_else_sees_anything(study, manager, django_user_model):
    arrive(study, prolific("anna-id"))
    access.add_member(study, "mona", Membership.Role.MANAGER)
    viewer = django_user_model.objects.create_user("vera")
    access.add_member(study, "vera", Membership.Role.VIEWER)
    number = Voter.objects.get().pk
    for path in (reverse("console:people", args=[study.pk]), at("person", study)):
        page = browser_of(manager).get(path).content.decode()
        assert str(number) in page
        assert "anna-id" not in page
        assert "Delete this person" not in page
        for stranger in (viewer, django_user_model.objects.create_user(f"s{len(path)}")):
            assert browser_of(stranger).get(path).status_code == 404
    grounds = {"reason": "other", "text": "x", "is_paid": "no"}
    for name, fields in (("end-part", grounds), ("bonus", {"bonus": "1"})):
        assert browser_of(viewer).post(at(name, study), fields).status_code == 404
    # Somebody of another campaign is nobody here.
    other = recruited_campaign(manager)
    assert browser_of(manager).get(at("person", other)).status_code == 404
    assert not Event.objects.filter(kind="participation-ended").exists()


@pytest.mark.parametrize("campaign_kind", ["sent", "by link"])
def test_many_people_cost_no_more_statements_than_few(owner, researcher, campaign, campaign_kind):
    shown = recruited_campaign(researcher) if campaign_kind == "sent" else campaign
    # Once each, so that what a process remembers is known.
    people_page(owner, shown)

    def cost() -> int:
        with CaptureQueriesContext(connection) as statements:
            assert people_page(owner, shown).status_code == 200
        return len(statements)

    few = cost()
    people = Voter.objects.bulk_create([Voter(campaign=shown) for _ in range(250)])
    if campaign_kind == "sent":
        ids = [Participant(owner=researcher, recruiter="prolific", external_id=f"p{each.pk}") for each in people]
        ids = Participant.objects.bulk_create(ids)
        pairs = zip(ids, people, strict=True)
        Participation.objects.bulk_create(Participation(participant=p, campaign=shown, voter=a) for p, a in pairs)
    assert cost() == few <= 16
    assert len(numbers(owner, shown)) == 100
    assert numbers(owner, shown, page="3") == list(range(201, 251))


def test_a_part_is_ended_from_the_page_with_a_reason(owner, study):
    vote(arrive(study, prolific("anna")), study)
    page = owner.post(at("end-part", study), {"reason": "careless", "text": " ", "is_paid": "no"}).content.decode()
    assert "This field is required" in page
    assert owner.post(at("end-part", study), {"reason": "careless", "text": "x"}).status_code == 200
    assert owner.post(at("end-part", study), {"reason": "link", "text": "x", "is_paid": "no"}).status_code == 200
    assert not Event.objects.filter(kind="participation-ended").exists()
    grounds = {"reason": "careless", "text": "too fast", "is_paid": "yes"}
    told = owner.post(at("end-part", study), grounds, follow=True).content.decode()
    assert "is ended. Their votes are kept." in told
    assert "too fast" in told
    assert Participation.objects.get().pay == "full"
    again = owner.post(at("end-part", study), grounds, follow=True).content.decode()
    assert "has been ended already by ada" in again


def test_votes_faster_than_the_threshold_are_a_flag_and_nothing_else(owner, researcher, tmp_path):
    study = recruited_campaign(researcher, max_votes_per_minute=3)
    anna, ben = (arrive(study, prolific(person)) for person in ("anna", "ben"))
    for browser in (anna, ben):
        vote(browser, study, times=5)
    first, second = Voter.objects.order_by("pk")
    for voter, seconds in ((first, 19), (second, 20)):
        now = timezone.now()
        for index, cast in enumerate(Vote.objects.filter(voter=voter).order_by("pk")):
            Vote.objects.filter(pk=cast.pk).update(cast_at=now + timedelta(seconds=seconds * index))
    # Anna's fourth and fifth votes are each the fourth within 57 seconds; ben's fourth comes after a whole minute.
    assert dict(fast_votes(study.voters.all(), 3)) == {first.pk: 2}
    assert numbers(owner, study, flagged="on") == [1]
    assert pair_of(anna, study)
    rows = table(export_to(study, tmp_path), "voters.csv")
    assert [(row["max_votes_per_minute"], row["fast_votes"]) for row in rows] == [("3", "2"), ("3", "0")]


def test_a_bonus_is_paid_also_after_the_end_and_must_be_an_amount(owner, researcher):
    study = recruited_campaign(researcher, votes_per_person=1)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    anna.get(f"{invitation_path(study)}vote/")
    for wrong in ("much", "-1", "1.234", "=1", "NaN"):
        assert "errorlist" in owner.post(at("bonus", study), {"bonus": wrong}).content.decode()
    owner.post(at("bonus", study), {"bonus": "1.5"})
    [row] = payments_of(owner, study)
    assert (row["outcome"], row["bonus"], row["reason"]) == ("completed", "1.50", "")
    owner.post(at("bonus", study), {"bonus": ""})
    assert [each["bonus"] for each in payments_of(owner, study)] == [""]


PROLIFIC = {"recruiter": "prolific", "votes_per_person": "40", "codes.completed": "C1", "codes.nothing-left": "C2"}


@pytest.fixture
def draft(researcher):
    return make_draft(researcher)


def save(owner, campaign, **fields) -> str:
    path = reverse("console:participants", args=[campaign.pk])
    return owner.post(path, fields, follow=True).content.decode()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"recruiter": "anybody", "consent": "Do you agree?"}, "Consent is stored with each person"),
        ({"recruiter": "anybody", "max_active_minutes": "5"}, "This is noted of each person"),
        ({"recruiter": "link", "parameter": "a b"}, "Enter a name of letters"),
        ({"return_address": "javascript:alert(1)"}, "begins with https://"),
        ({"return_address": "https://x.example/?a={prolific}"}, "{prolific} is not known"),
        ({"recruiter": "link", "parameter": "p", "return_address": "https://x.example/{}"}, "{} is not known"),
        ({"return_address": "https://x.example{STUDY_ID}/"}, "only after the host"),
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


NAMES = ("Grace Hopper", "Emmy Noether", "Mary Cartwright")


def test_a_panel_is_set_up_and_its_draft_says_the_price_and_warns_of_few_pairs(signed_in, idle_tasks):
    fields = form(panel="\n".join(NAMES), steps="400", **{"judges.0.votes": "1"})
    answer = signed_in.post(reverse("console:create"), fields)
    idle_tasks()
    draft = Campaign.objects.get()
    assert [judge["source"] for judge in draft.config_data["judges"]] == [
        {"kind": "panelist", "name": name} for name in NAMES
    ]
    page = signed_in.get(answer.url).content.decode()
    assert "12.5 % of the steps at best" in page
    assert "These objects make only 66 pairs" in page
    assert page.count("Question: Which?; Most votes on a pair (N): 1; Who answers?: One person of a panel<") == 1
    assert "3 people, one answer of each" in page
    setup = signed_in.get(reverse("console:edit", args=[draft.pk])).content.decode()
    assert "\n".join(NAMES) in setup
    assert setup.count('value="Which?"') == 1


def test_nobody_joins_leaves_or_is_removed_after_the_start(researcher, signed_in):
    campaign = panel_campaign(researcher, 2)
    person = sit_down(campaign, 1)
    with pytest.raises(lifecycle.NotPossible, match="another distribution"):
        access.invite(campaign)
    for path, fields in (
        (reverse("console:end-part", args=[campaign.pk, number_of(person)]), {"reason": "other", "text": "away"}),
        (reverse("console:revoke", args=[campaign.pk, link_of(campaign, 1).pk]), {"withdraw": "on"}),
        (reverse("console:revoke", args=[campaign.pk, link_of(campaign, 1).pk]), {}),
    ):
        page = signed_in.post(path, fields, follow=True)
        assert "another distribution" in page.content.decode()
    assert page.redirect_chain == [(reverse("console:edit", args=[campaign.pk]), 302)]
    person.refresh_from_db()
    assert person.removed_at is None
    assert link_of(campaign, 1).revoked_at is None


def answer(person, side: Side | None = None) -> None:
    """Answer what somebody is asked, for the proposal unless a side is given."""
    lease = leases.take(person)
    leases.answer(lease.key, person, side or Side(lease.proposal_side), 1500)


def test_a_panelist_who_sleeps_holds_up_its_chains_and_is_seen_and_reminded(researcher, signed_in, tmp_path):
    campaign = panel_campaign(researcher, 2, names=NAMES[:2], config={"chains": 2})
    Comparison.objects.update(uniform=0.0, log_r0=0.0)
    awake = sit_down(campaign, 1)
    for _ in range(2):
        answer(awake)
    # Both chains wait for the other panelist, and nothing is left for this one.
    assert leases.take(awake) is None
    Comparison.objects.update(opened_at=timezone.now() - timedelta(hours=2))
    Lease.objects.update(ended_at=timezone.now() - timedelta(hours=1))
    path = reverse("console:panel", args=[campaign.pk])
    page = signed_in.get(path).content.decode()
    assert "2 chains</strong> since" in page
    assert "2 pairs wait for your answer since" in page
    assert NAMES[1] in page
    signed_in.post(reverse("console:remind", args=[campaign.pk, 2]))
    assert "1 time, the last time" in signed_in.get(path).content.decode()
    own_page = Client().get(link_of(campaign, 2).get_absolute_url()).content.decode()
    assert "2 pairs wait for your answer." in own_page
    assert not any(name in own_page for name in NAMES)
    export = export_to(campaign, tmp_path)
    assert [said["panelist"] for _, said in happened(export, "reminded")] == [2]
    assert not any(name in everything_in(export) for name in NAMES)
    # Whoever wakes up goes on where they left.
    answer(sit_down(campaign, 2))
    assert leases.take(awake)


def test_only_the_owner_sees_the_names(researcher, django_user_model, client):
    campaign = panel_campaign(researcher, 2, names=NAMES[:2])
    manager = django_user_model.objects.create_user("grete", password="correct horse battery staple")
    access.add_member(campaign, "grete", Membership.Role.MANAGER)
    client.force_login(manager)
    pages = (reverse(f"console:{name}", args=[campaign.pk]) for name in ("panel", "edit"))
    for path in (*pages, campaign.get_absolute_url()):
        page = client.get(path)
        assert page.status_code == 200
        assert not any(name in page.content.decode() for name in NAMES)


def test_a_panel_that_was_ended_early_says_so(researcher, signed_in):
    campaign = panel_campaign(researcher, 2, config={"chains": 2, "steps": 20})
    Chain.objects.update(step=8)
    lifecycle.finish_now(campaign)
    ended = "The campaign was ended before its last step."
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert f"Finished.</strong> {ended}" in " ".join(page.split())
    assert ended in signed_in.get(reverse("console:results", args=[campaign.pk])).content.decode()


def test_the_page_of_a_panel_that_is_over_has_no_link_to_send(researcher, signed_in):
    campaign = panel_campaign(researcher, 2)
    Comparison.objects.update(opened_at=timezone.now() - timedelta(hours=2))
    access.remind(campaign, 1)
    path, links = (
        reverse("console:panel", args=[campaign.pk]),
        [link_of(campaign, panelist).token for panelist in (1, 2)],
    )
    page = signed_in.get(path).content.decode()
    assert all(link in page for link in links)
    lifecycle.finish_now(campaign)
    page = signed_in.get(path).content.decode()
    assert not any(link in page for link in links)
    assert "nobody can join by a link any more" in page
    assert "1 time, the last time" in page
