"""The tab Steps: its limits, and the page of one step."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator, Comparison, Membership, Side, Vote
from prefmh_web.campaigns.monitoring.steps import Wanted, rows_of, steps_in
from prefmh_web.campaigns.voters import number_of
from tests.security.world import browser_of
from tests.support import campaigns
from tests.support.campaigns import make_campaign, make_config, voted_to_the_end

# Fixtures: pytest looks for them among the names of this file.
rating_endpoint, rating_script = campaigns.rating_endpoint, campaigns.rating_script


@pytest.fixture
def finished(researcher, idle_tasks):
    """A campaign with its last vote."""
    return voted_to_the_end(make_campaign(researcher, config=make_config(chains=2, steps=12)))


def listed(desk, campaign, **limits) -> set[tuple[int, int]]:
    """Return chain and step of every row on the first page."""
    page = desk.get(reverse("console:steps", args=[campaign.pk]), limits).content.decode()
    return {(int(chain), int(step)) for chain, step in re.findall(r"Chain (\d+), step (\d+)</a>", page)}


def placed(steps) -> set[tuple[int, int]]:
    return set(steps.values_list("chain__place", "step"))


def test_the_limits_leave_what_they_say(signed_in, finished):
    steps = Comparison.objects.all()
    assert listed(signed_in, finished) == placed(steps)
    assert listed(signed_in, finished, chain=1) == placed(steps.filter(chain__place=1))
    for verdict, standing in (("accept", "accepted"), ("reject", "rejected")):
        found = listed(signed_in, finished, standing=standing)
        assert found == placed(steps.filter(verdict=verdict)) != set()
    assert listed(signed_in, finished, standing="open") == set()
    for place in (0, 1):
        found = listed(signed_in, finished, judge=place)
        assert found == placed(steps.filter(votes__judge__place=place, votes__number__isnull=False)) != set()
    person = Annotator.objects.first()
    assert (
        listed(signed_in, finished, person=number_of(person)) == placed(steps.filter(votes__annotator=person)) != set()
    )
    assert listed(signed_in, finished, person=1_000) == set()
    slow = steps.filter(verdict__isnull=False).first()
    Comparison.objects.filter(pk=slow.pk).update(
        opened_at=slow.decided_at - 2 * (slow.decided_at - slow.opened_at) * 10**4
    )
    took = (slow.decided_at - Comparison.objects.get(pk=slow.pk).opened_at).total_seconds()
    assert listed(signed_in, finished, seconds=took - 0.001) == {(slow.chain.place, slow.step)}
    assert listed(signed_in, finished, seconds=took + 0.001) == set()


def test_a_step_shows_votes_in_order_with_sides_verdict_and_draw(signed_in, finished):
    step = Comparison.objects.filter(verdict="accept", votes__number=2).first()
    page = signed_in.get(reverse("console:step", args=[finished.pk, step.chain.place, step.step])).content.decode()
    assert step.current.content in _plain(page)
    assert step.proposal.content in _plain(page)
    assert repr(step.uniform) in page
    assert f"log r0 = {step.log_r0}" in page
    table = page.split("<h3>Votes</h3>")[1]
    rows = re.findall(r"<tr>.*?</tr>", table.split("<tbody>")[1], flags=re.DOTALL)
    told = [
        (f"<td>{vote.number}</td>", vote.chosen_side, f"person {number_of(vote.annotator)}") for vote in _votes(step)
    ]
    assert len(rows) == len(told) >= 2
    for row, words in zip(rows, told, strict=True):
        assert all(word in row for word in words)
        assert reverse("console:people", args=[finished.pk]) in row


def _votes(step) -> list[Vote]:
    return list(step.votes.filter(number__isnull=False).order_by("number"))


def _plain(page: str) -> str:
    return re.sub(r"<span class=\"(?:common|same|changed)\">|</span>", "", page)


def test_the_uniform_stays_hidden_while_votes_are_out(signed_in, campaign):
    """Also once there is a vote; the export hides it as long."""
    lease = leases.take(Annotator.objects.create(campaign=campaign))
    address = reverse("console:step", args=[campaign.pk, lease.comparison.chain.place, lease.comparison.step])
    for _ in range(2):
        page = signed_in.get(address).content.decode()
        assert "hidden until the step is decided" in page
        assert repr(lease.comparison.uniform) not in page
        leases.answer(lease.key, lease.annotator, Side.FIRST, 0)
        if Comparison.objects.get(pk=lease.comparison_id).verdict:
            break


def test_a_viewer_reads_a_step_and_no_page_of_a_person(finished, django_user_model):
    viewer = django_user_model.objects.create_user("viewer")
    access.add_member(finished, viewer.username, Membership.Role.VIEWER)
    step = Comparison.objects.filter(votes__number=1).first()
    page = browser_of(viewer).get(reverse("console:step", args=[finished.pk, step.chain.place, step.step]))
    assert page.status_code == 200
    assert "person " in page.content.decode()
    assert reverse("console:people", args=[finished.pk]) not in page.content.decode()


@pytest.fixture
def rated(researcher, endpoint, idle_tasks):
    made = campaigns.make(researcher, idle_tasks)
    campaigns.finish(made, idle_tasks)
    return made


@pytest.fixture
def scored(researcher, idle_tasks):
    rule = {"kind": "score", "form": "power", "scorers": ["words"], "beta": 1}
    made = make_campaign(researcher, config=make_config(judges=[], rule=rule, chains=2, steps=10))
    campaigns.finish(made, idle_tasks)
    return made


@pytest.mark.parametrize("kind", ["finished", "rated", "scored"])
def test_more_rows_take_no_more_queries(request, idle_tasks, kind):
    campaign = request.getfixturevalue(kind)
    judges, steps = list(campaign.judges.all()), list(steps_in(campaign, Wanted()))
    taken = []
    for most in (1, len(steps)):
        with CaptureQueriesContext(connection) as queries:
            rows = rows_of(campaign, judges, steps[:most])
        taken.append(len(queries))
    assert len(rows) == 20 + 4 * (kind == "finished")
    assert taken == [1, 1]
