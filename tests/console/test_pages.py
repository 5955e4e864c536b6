"""The researcher's pages over HTTP: who may see what, and what a bad form says.

Suspended steps on the researcher's pages: told on the live page, tried again or ended on their own.

Skips by side and judge, pairs that ran out of time and late votes, on the live page.
"""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Event, Lease
from prefmh_web.campaigns.monitoring.progress import progress_of
from tests.campaigns.engine.test_suspension import campaign_of, skip
from tests.security.world import browser_of
from tests.support.campaigns import TEXTS, live_page, make_campaign, make_config, make_draft

OF_TEXTS = {"space.kind": "texts"}
OF_MOLECULES = {"space.kind": "molecules", "space.molecules.start": "CC"}


def form(**changes) -> dict:
    """Return what a browser sends for a good setup, with changes."""
    return {
        "name": "Mine",
        "space.kind": "catalog",
        "space.catalog.objects": "texts",
        "space.catalog.file": SimpleUploadedFile("t.csv", TEXTS.encode()),
        "space.catalog.neighbours": "4",
        "kernel.kind": "usual",
        "instructions": "",
        "chains": "2",
        "steps": "10",
        "answering.seconds": "60",
        "seed": "",
        "rule.kind": "n-vote",
        "judges.0.question": "Which?",
        "judges.0.votes": "2",
        "judges.0.source.kind": "people",
    } | changes


def as_shown(client, path: str) -> dict[str, list[str]]:
    """Return what a browser sends of a page's form that nobody has touched."""
    leaves = client.get(path).context["form"].leaves
    return {
        name: [each.replace("\n", "\r\n") for each in posted]
        for name, leaf in leaves.items()
        if not leaf.why_fixed and (posted := leaf.as_posted())
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"name": ""}, "This field is required"), ({"judges.0.question": ""}, "there must be 1 to 8")],
)
def test_a_bad_form_says_why_and_saves_nothing(signed_in, changes, message):
    answer = signed_in.post(reverse("console:create"), form(**changes))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    # What was typed stays.
    assert answer.context["form"]["steps"].value() == form(**changes)["steps"]
    assert not Campaign.objects.exists()


def test_a_draft_can_be_deleted_and_a_started_campaign_cannot(signed_in, researcher, campaign, idle_tasks):
    draft = make_draft(researcher, name="Only a try")
    page = signed_in.post(reverse("console:discard", args=[draft.pk]), follow=True)
    assert "“Only a try” has been deleted" in page.content.decode()
    page = signed_in.post(reverse("console:discard", args=[campaign.pk]), follow=True)
    assert "its data is kept" in page.content.decode()
    assert list(Campaign.objects.all()) == [campaign]


def test_a_change_of_state_needs_a_post(signed_in, campaign):
    assert signed_in.get(reverse("console:pause", args=[campaign.pk])).status_code == 405


def test_a_draft_says_how_many_rows_gave_no_object(signed_in, researcher, idle_tasks):
    few = make_draft(researcher, file=TEXTS + "twice,1\n" * 8)
    assert "Not all of the file is used (7)" in signed_in.get(few.get_absolute_url()).content.decode()
    many = make_draft(researcher, file=TEXTS + "twice,1\n" * 1_206)
    page = signed_in.get(many.get_absolute_url()).content.decode()
    assert "Not all of the file is used (1205)" in page
    assert "205 more are not listed" in page


def test_chains_that_wait_for_their_model_say_why(signed_in, campaign):
    Chain.objects.exclude(place=0).update(waits_because="the writer gave no tokens")
    page = signed_in.get(campaign.get_absolute_url())
    assert "2 chains wait for the model: the writer gave no tokens." in page.content.decode()


def test_a_long_list_of_campaigns_has_pages(client, researcher, campaign):
    client.force_login(researcher)
    Campaign.objects.bulk_create(
        Campaign(owner=researcher, name=f"Number {number}", config_data=campaign.config_data) for number in range(60)
    )
    first, second = (client.get("/", {"page": page}).content.decode() for page in (1, 2))
    assert "Page 1 of 2" in first
    assert {*re.findall(r"Number \d+", first)}.isdisjoint(re.findall(r"Number \d+", second))
    assert len({*re.findall(r"Number \d+", first + second)}) == 60


WHY = "A file is broken."


@pytest.fixture
def study(researcher, idle_tasks) -> Campaign:
    """A campaign whose only chain waits at a suspended step."""
    campaign = campaign_of(researcher, suspend_after_skips=2)
    skip(campaign, 2)
    return campaign


def address(campaign, name: str) -> str:
    return reverse(f"console:{name}", args=[campaign.pk, Comparison.objects.get(suspended_at__isnull=False).pk])


def test_the_live_page_tells_why_and_shows_the_objects(researcher, study):
    desk, step = browser_of(researcher), Comparison.objects.get()
    page = live_page(desk, study)
    assert "1 step waits for you." in page
    assert "It was skipped 2 times." in page
    assert step.current.content in page
    assert step.proposal.content in page
    setup = desk.get(reverse("console:edit", args=[study.pk])).content.decode()
    assert "after 2 skips, or when 2 people report that an object is not shown" in setup
    asked = desk.post(address(study, "ask-again"), follow=True).content.decode()
    assert "Step 1 of chain 0 is asked again." in asked
    assert "No step is suspended." in asked
    assert "Suspended steps" not in live_page(desk, study)


def test_a_chain_is_ended_with_a_reason_and_not_without(researcher, study):
    desk, path = browser_of(researcher), address(study, "end-chain")
    refused = desk.post(path, {"words": " "}).content.decode()
    assert "errorlist" in refused
    assert not Chain.objects.filter(ended_at__isnull=False).exists()
    ended = desk.post(path, {"words": WHY}, follow=True).content.decode()
    assert "Chain 0 ends before step 1." in ended
    assert "The campaign is finished." in ended
    assert "Finished.</strong> Every chain was ended at a suspended step." in live_page(desk, study)
    assert Event.objects.get(kind="chain-ended").data["words"] == WHY
    assert "ended here" in live_page(desk, study)
    # The page was open in another tab.
    assert "not suspended any more" in desk.post(path, {"words": WHY}, follow=True).content.decode()


JUDGES = [
    {"question": "Which is darker?", "votes": 1, "order": order} for order in ("proposal-first", "proposal-second")
]


@pytest.fixture
def crowds_study(researcher, idle_tasks) -> Campaign:
    return make_campaign(researcher, config=make_config(chains=2, judges=JUDGES))


def take(campaign) -> Lease:
    return leases.take(Annotator.objects.create(campaign=campaign))


def page_of(researcher, campaign) -> str:
    return browser_of(researcher).get(campaign.get_absolute_url()).content.decode()


def test_skips_are_counted_by_judge_and_by_where_the_proposal_stood(researcher, crowds_study):
    assert "Pairs without a vote" not in page_of(researcher, crowds_study)
    sides = [_skip(crowds_study) for _ in range(5)]
    found = progress_of(crowds_study).unanswered
    # The first judge's proposals come first, the second one's second.
    assert [(each.first, each.second) for each in found.skips] == [
        (sides.count("first"), 0),
        (0, sides.count("second")),
    ]
    assert not any(each.is_uneven for each in found.skips)
    page = page_of(researcher, crowds_study)
    assert "Proposal first" in page
    assert "ran out of time" not in page


def _skip(crowds_study) -> str:
    lease = take(crowds_study)
    leases.skip(lease.key, lease.annotator)
    return lease.proposal_side


def test_a_pair_taken_back_from_somebody_removed_is_no_skip(crowds_study):
    lease = take(crowds_study)
    Annotator.objects.filter(pk=lease.annotator_id).update(removed_at=timezone.now())
    leases.withdraw([lease.annotator_id])
    assert not progress_of(crowds_study).unanswered.is_worth_telling
