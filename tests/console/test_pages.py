"""The researcher's pages over HTTP: who may see what, and what a bad form says.

Suspended steps on the researcher's pages: told on the live page, tried again or ended on their own.

Skips by side and judge, pairs that ran out of time and late votes, on the live page.

The tab Steps: its limits, and the page of one step.
"""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.models import (
    Campaign,
    Chain,
    Comparison,
    Event,
    Lease,
    Membership,
    Side,
    Turn,
    Vote,
    Voter,
    number_of,
)
from prefmh_web.campaigns.monitoring.progress import progress_of
from prefmh_web.campaigns.monitoring.steps import rows_of, steps_in
from prefmh_web.campaigns.record.export import results_now
from prefmh_web.console.forms.fields import as_sent
from tests.campaigns.engine.test_suspension import campaign_of, skip
from tests.security.world import browser_of
from tests.support import campaigns
from tests.support.campaigns import (
    TEXTS,
    live_page,
    make_campaign,
    make_config,
    make_draft,
    set_study,
    voted_to_the_end,
)

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
        if not leaf.why_fixed and (posted := as_sent(leaf.field, leaf.bound.value()))
    }


def test_a_draft_can_be_deleted_and_a_started_campaign_cannot(signed_in, researcher, campaign, idle_tasks):
    draft = make_draft(researcher, name="Only a try")
    page = signed_in.post(reverse("console:discard", args=[draft.pk]), follow=True)
    assert "“Only a try” has been deleted" in page.content.decode()
    page = signed_in.post(reverse("console:discard", args=[campaign.pk]), follow=True)
    assert "its data is kept" in page.content.decode()
    assert list(Campaign.objects.all()) == [campaign]


def test_a_draft_says_how_many_rows_gave_no_object(signed_in, researcher, idle_tasks):
    few = make_draft(researcher, file=TEXTS + "twice,1\n" * 8)
    assert "Not all of the file is used (7)" in signed_in.get(few.get_absolute_url()).content.decode()
    many = make_draft(researcher, file=TEXTS + "twice,1\n" * 1_206)
    page = signed_in.get(many.get_absolute_url()).content.decode()
    assert "Not all of the file is used (1205)" in page
    assert "205 more are not listed" in page


def test_a_draft_names_its_scenarios_and_tells_minutes_where_people_need_less_than_an_hour(signed_in, researcher):
    space, judge = {"kind": "texts", "scenarios": [0, 2]}, {"question": "Which?", "votes": 1}
    config = make_config(space=space, kernel={"kind": "suffix"}, judges=[judge], steps=10)
    draft = make_draft(researcher, file="", config=config)
    set_study(draft, {"votes_per_person": 200})
    page = signed_in.get(draft.get_absolute_url()).content.decode()
    assert "1 person who gives 200 votes each" in page
    assert f"Scenarios: “{sampler.STORY_SCENARIOS[0].prompt}”, “{sampler.STORY_SCENARIOS[2].prompt}”" in page
    assert re.search(r"<strong>\d+ min</strong> of people", page)


def test_large_numbers_are_written_in_one_way_and_one_proposal_is_told_as_one(signed_in, campaign):
    campaign.chains.update(length=2_000, step=1, moves=1, accepted=1)
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "3<small> of 6,000</small>" in page
    assert "step 1 of 2,000<" in page
    assert "of 1 proposal that differed" in page
    assert "3 of 6,000 steps" in signed_in.get(reverse("console:campaigns")).content.decode()


def test_chains_that_wait_for_their_model_say_why(signed_in, campaign):
    Chain.objects.exclude(index=0).update(waits_because="the writer gave no tokens")
    page = signed_in.get(campaign.get_absolute_url())
    assert "2 chains wait for the model: the writer gave no tokens." in page.content.decode()


def test_the_page_says_how_many_more_turns_of_models_wait_than_it_lists(signed_in, researcher, endpoint, idle_tasks):
    source = {"kind": "model", "endpoint": endpoint.name}
    judged = {"judges": [{"question": "Which?", "votes": 3, "source": source}], "chains": 23}
    campaign = make_campaign(researcher, config=make_config(**judged))
    judge, opened = campaign.judges.get(), Comparison.objects.filter(chain__campaign=campaign)
    Turn.objects.all().delete()
    Turn.objects.bulk_create(Turn(comparison=each, judge=judge, reason="It is down.") for each in opened)
    assert f"{opened.count() - 20} more wait." in live_page(signed_in, campaign)
    # Nobody is needed, for it is asked again by itself; but no vote comes.
    Turn.objects.update(until=timezone.now() + timedelta(minutes=1))
    assert "A model does not answer." in live_page(signed_in, campaign)


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


def test_a_card_shows_where_a_campaign_is_and_more_cards_take_no_more_queries(signed_in, researcher, idle_tasks):
    address, taken = reverse("console:campaigns"), []
    for name in ("One", "Two"):
        made = make_campaign(researcher, name=name)
        with CaptureQueriesContext(connection) as queries:
            page = signed_in.get(address).content.decode()
        taken.append(len(queries))
        head, chains = made.chains.get(index=0).head.content, list(made.chains.all())
        card = page.split(">" + name + "</a>")
        assert head in card[0]
        assert f"0 of {sum(each.length for each in chains)} steps" in card[1]
    assert taken[0] == taken[1]


def test_the_verdict_is_on_the_overview_and_then_on_the_card(signed_in, finished):
    address = reverse("console:verdict", args=[finished.pk])
    assert address in signed_in.get(finished.get_absolute_url()).content.decode()
    said = signed_in.get(address).content.decode()
    found = results_now(finished).verdict
    assert f"<strong>{found.is_that.capitalize()}.</strong>" in said
    assert found.is_that != sampler.NO_SIGN
    assert "that does not mean that its chains have converged" in said
    listed = signed_in.get(reverse("console:campaigns")).content.decode()
    assert f"<strong>{found.is_that.capitalize()}</strong>" in listed
    # Once its chains are to go on, what was said is no verdict on the whole.
    changes.extend(finished, 2, finished.owner)
    assert "<strong>" not in signed_in.get(reverse("console:campaigns")).content.decode()


def test_every_page_of_the_documentation_is_served_and_nothing_else(signed_in):
    page = signed_in.get(reverse("console:docs", args=["using"])).content.decode()
    assert page.count('aria-current="page"') == 1
    for name in set(re.findall(r'href="([a-z-]+)\.md', page)):
        assert signed_in.get(reverse("console:docs", args=[name])).status_code == 200, name
    shown = {path.stem: signed_in.get(f"/docs/{path.name}").content.decode() for path in settings.DOCS_DIR.glob("*.md")}
    links = [link for text in shown.values() for link in re.findall(r'href="([a-z-]+)\.md#([^"]+)"', text)]
    assert [(name, anchor) for name, anchor in links if f' id="{anchor}"' not in shown[name]] == []
    assert [name for name, text in shown.items() if "&lt;kbd" in text] == []
    assert signed_in.get("/docs/missing.md").status_code == 404
    assert signed_in.get("/docs/..%2FREADME.md").status_code == 404


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
    assert "Set a step aside after so many skips: 2; Set a step aside after so many reports: 2;" in setup
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
    assert "Finished.</strong> Every chain was ended at a suspended step." in " ".join(live_page(desk, study).split())
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
    return leases.take(Voter.objects.create(campaign=campaign))


def page_of(researcher, campaign) -> str:
    return browser_of(researcher).get(campaign.get_absolute_url()).content.decode()


def test_skips_are_counted_by_judge_and_by_where_the_proposal_stood(researcher, crowds_study):
    assert "Pairs without a vote" not in page_of(researcher, crowds_study)
    sides = [_skip(crowds_study) for _ in range(5)]
    found = progress_of(crowds_study).unanswered
    # The first judge's proposals come first, the second one's second.
    assert [(each["first"], each["second"]) for each in found["skips"]] == [
        (sides.count("first"), 0),
        (0, sides.count("second")),
    ]
    assert not any(each["is_uneven"] for each in found["skips"])
    page = page_of(researcher, crowds_study)
    assert "Proposal first" in page
    assert "ran out of time" not in page


def _skip(crowds_study) -> str:
    lease = take(crowds_study)
    leases.skip(lease.key, lease.voter)
    return lease.proposal_side


def test_a_pair_taken_back_from_somebody_removed_is_no_skip(crowds_study):
    lease = take(crowds_study)
    Voter.objects.filter(pk=lease.voter_id).update(removed_at=timezone.now())
    leases.withdraw([lease.voter_id])
    assert progress_of(crowds_study).unanswered is None


# Fixtures: pytest looks for them among the names of this file.
rating_endpoint, rating_script = campaigns.rating_endpoint, campaigns.rating_script


@pytest.fixture
def finished(researcher, idle_tasks):
    """A campaign with its last vote."""
    return voted_to_the_end(make_campaign(researcher, config=make_config(chains=2, steps=12)))


def test_start_afresh_leads_to_the_copy_also_while_its_list_is_read(signed_in, finished):
    page = signed_in.post(reverse("console:start-afresh", args=[finished.pk]), follow=True)
    copy = Campaign.objects.exclude(pk=finished.pk).get()
    assert page.redirect_chain[-1][0] == copy.get_absolute_url()
    assert not copy.is_draft or "has not started yet. The file is still being read" in page.content.decode()


def listed(desk, campaign, **limits) -> set[tuple[int, int]]:
    """Return chain and step of every row on the first page."""
    page = desk.get(reverse("console:steps", args=[campaign.pk]), limits).content.decode()
    return {(int(chain), int(step)) for chain, step in re.findall(r"Chain (\d+), step (\d+)</a>", page)}


def placed(steps) -> set[tuple[int, int]]:
    return set(steps.values_list("chain__index", "step"))


def test_a_vote_that_came_too_late_is_told_beside_those_that_counted(signed_in, finished):
    assert "Pairs without a vote" not in live_page(signed_in, finished)
    late = Vote.objects.filter(judge__campaign=finished).last()
    Vote.objects.filter(pk=late.pk).update(number=None)
    found = progress_of(finished).unanswered
    assert (found["late_for"], found["late_against"]) == (int(late.for_proposal), int(not late.for_proposal))
    assert f"{found['late_for']} for the proposal, {found['late_against']} for the current object" in live_page(
        signed_in, finished
    )


def test_the_limits_leave_what_they_say(signed_in, finished):
    steps = Comparison.objects.all()
    assert listed(signed_in, finished) == placed(steps)
    assert listed(signed_in, finished, chain=1) == placed(steps.filter(chain__index=1))
    for verdict, status in (("accept", "accepted"), ("reject", "rejected")):
        found = listed(signed_in, finished, status=status)
        assert found == placed(steps.filter(verdict=verdict)) != set()
    assert listed(signed_in, finished, status="open") == set()
    for index in (0, 1):
        found = listed(signed_in, finished, judge=index)
        assert found == placed(steps.filter(votes__judge__index=index, votes__number__isnull=False)) != set()
    person = Voter.objects.first()
    assert listed(signed_in, finished, person=number_of(person)) == placed(steps.filter(votes__voter=person)) != set()
    assert listed(signed_in, finished, person=1_000) == set()
    slow = steps.filter(verdict__isnull=False).first()
    Comparison.objects.filter(pk=slow.pk).update(
        opened_at=slow.decided_at - 2 * (slow.decided_at - slow.opened_at) * 10**4
    )
    took = (slow.decided_at - Comparison.objects.get(pk=slow.pk).opened_at).total_seconds()
    assert listed(signed_in, finished, seconds=took - 0.001) == {(slow.chain.index, slow.step)}
    assert listed(signed_in, finished, seconds=took + 0.001) == set()


def test_a_step_shows_votes_in_order_with_sides_verdict_and_draw(signed_in, finished):
    step = Comparison.objects.filter(verdict="accept", votes__number=2).first()
    page = signed_in.get(reverse("console:step", args=[finished.pk, step.chain.index, step.step])).content.decode()
    assert step.current.content in _plain(page)
    assert step.proposal.content in _plain(page)
    assert repr(step.uniform) in page
    assert f"log r0 = {step.log_r0}" in page
    table = page.split("<h3>Votes</h3>")[1]
    rows = re.findall(r"<tr>.*?</tr>", table.split("<tbody>")[1], flags=re.DOTALL)
    counted = step.votes.filter(number__isnull=False).order_by("number")
    told = [(f"<td>{each.number}</td>", each.chosen_side, f"person {number_of(each.voter)}") for each in counted]
    assert len(rows) == len(told) >= 2
    for row, words in zip(rows, told, strict=True):
        assert all(word in row for word in words)
        assert reverse("console:people", args=[finished.pk]) in row


def _plain(page: str) -> str:
    return re.sub(r"<span class=\"(?:common|same|changed)\">|</span>", "", page)


def test_the_uniform_stays_hidden_while_votes_are_out(signed_in, campaign):
    """Also once there is a vote; the export hides it as long."""
    lease = leases.take(Voter.objects.create(campaign=campaign))
    address = reverse("console:step", args=[campaign.pk, lease.comparison.chain.index, lease.comparison.step])
    for _ in range(2):
        page = signed_in.get(address).content.decode()
        assert "hidden until the step is decided" in page
        assert repr(lease.comparison.uniform) not in page
        leases.answer(lease.key, lease.voter, Side.FIRST, 0)
        if Comparison.objects.get(pk=lease.comparison_id).verdict:
            break


def test_a_viewer_reads_a_step_and_no_page_of_a_person(finished, django_user_model):
    viewer = django_user_model.objects.create_user("viewer")
    access.add_member(finished, viewer.username, Membership.Role.VIEWER)
    step = Comparison.objects.filter(votes__number=1).first()
    page = browser_of(viewer).get(reverse("console:step", args=[finished.pk, step.chain.index, step.step]))
    assert page.status_code == 200
    assert "person " in page.content.decode()
    assert reverse("console:people", args=[finished.pk]) not in page.content.decode()


@pytest.fixture
def rated(researcher, endpoint, idle_tasks):
    made = campaigns.make(researcher)
    assert campaigns.swept(made).status == Campaign.Status.FINISHED
    return made


@pytest.fixture
def scored(researcher, idle_tasks):
    rule = {"kind": "score", "form": "power", "scorers": ["words"], "beta": 1}
    made = make_campaign(researcher, config=make_config(judges=[], rule=rule, chains=2, steps=10))
    assert campaigns.swept(made).status == Campaign.Status.FINISHED
    return made


@pytest.mark.parametrize("kind", ["finished", "rated", "scored"])
def test_more_rows_take_no_more_queries(request, idle_tasks, kind):
    campaign = request.getfixturevalue(kind)
    judges, steps = list(campaign.judges.all()), list(steps_in(campaign, {}))
    taken = []
    for most in (1, len(steps)):
        with CaptureQueriesContext(connection) as queries:
            rows = rows_of(campaign, judges, steps[:most])
        taken.append(len(queries))
    assert len(rows) == 20 + 4 * (kind == "finished")
    assert taken == [1, 1]


def test_a_change_of_state_needs_a_post(signed_in, campaign):
    assert signed_in.get(reverse("console:pause", args=[campaign.pk])).status_code == 405
