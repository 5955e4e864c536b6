"""The tab Convergence: what it says is what the record says, it follows live, and its work is bounded."""

import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Comparison, Measured
from prefmh_web.campaigns.monitoring.results import follow
from prefmh_web.campaigns.monitoring.trajectories import trajectories_of
from prefmh_web.campaigns.proposals import measuring
from tests.console.test_overview import cookies_of
from tests.security.world import browser_of
from tests.support.campaigns import make_campaign, make_config, voted_to_the_end, wait_until_idle
from tests.support.installations import closing_code, open_socket

TEXTS = "text\n" + "".join(
    f"The {colour} {'old ' * place}{thing} stood there.\n"
    for place, (colour, thing) in enumerate((c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "sea"))
)


@pytest.fixture
def finished(researcher):
    """A campaign of 3 chains with 40 steps each, the first 10 of which are burn-in."""
    return voted_to_the_end(make_campaign(researcher, file=TEXTS, config=make_config(steps=40, burn_in=10)))


def page_of(campaign, user, query=""):
    return browser_of(user).get(reverse("console:convergence", args=[campaign.pk]) + query)


def words_along(campaign, place):
    """The number of words of chain `place`'s object after each step, from its start, read step by step."""
    chain = campaign.chains.get(place=place)
    found = [len(chain.start.content.split())]
    for step in Comparison.objects.filter(chain=chain, verdict__isnull=False).order_by("step"):
        head = step.proposal if step.verdict == Comparison.Verdict.ACCEPT else step.current
        found.append(len(head.content.split()))
    return found


def measured(campaign):
    measuring.measure(campaign.pk)
    wait_until_idle()
    return trajectories_of(campaign)


def test_a_property_is_followed_as_steps_are_decided_and_what_is_remembered_goes_on(researcher, idle_tasks):
    campaign = make_campaign(researcher, file=TEXTS, config=make_config(steps=12))
    assert [len(each) for each in trajectories_of(campaign).along("words").values()] == [1, 1, 1]
    voted_to_the_end(campaign)
    assert trajectories_of(campaign).until == min(
        each.decided_at for each in Comparison.objects.filter(verdict="accept")
    )
    trajectories, last = measured(campaign), Comparison.objects.latest("decided_at")
    assert (trajectories.unmeasured, trajectories.until) == (0, last.decided_at)
    assert [each.tolist() for each in trajectories.along("words").values()] == [
        words_along(campaign, c) for c in range(3)
    ]


def test_the_statistics_are_those_of_the_sampler_without_the_burn_in(finished, researcher):
    measured(finished)
    name = "readability"
    found = follow(trajectories_of(finished), name, 11)
    draws = [numbers[11:] for numbers in trajectories_of(finished).along(name).values()]
    [of] = found.statistics.targets
    assert of.found == sampler.diagnostics.convergence(draws)
    page = page_of(finished, researcher, f"?properties={name}").content.decode()
    assert [each for each in (f"{found.statistics.r_hat:.3f}", "Steps decided until") if each not in page] == []
    assert "3 chains of 30 draws" in page
    assert "leave out the first 10 steps" in page
    assert "3 chains of 40 draws" in page_of(finished, researcher, f"?properties={name}&all_steps=on").content.decode()


def test_objects_are_measured_once_and_not_by_the_page(finished, researcher, monkeypatch):
    page = page_of(finished, researcher)
    assert "0 of" in page.content.decode()
    wait_until_idle()
    stored = Measured.objects.count()
    assert stored == trajectories_of(finished).visited
    assert "objects are measured" not in page_of(finished, researcher).content.decode()
    measuring.measure(finished.pk)
    assert Measured.objects.count() == stored


def test_the_page_follows(live_site, campaign, researcher):
    address = f"/ws/campaigns/{campaign.pk}/convergence/?properties=words"
    with open_socket(live_site.url, address, cookies_of(browser_of(researcher))) as socket:
        first = socket.recv(timeout=10)
        assert '<div id="convergence">' in first
        # The objects are measured because somebody looks.
        while "Trace of words" not in first:
            first = socket.recv(timeout=10)


def test_nobody_else_follows(live_site, campaign, django_user_model):
    for cookies in ("", cookies_of(browser_of(django_user_model.objects.create_user("colleague")))):
        with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/convergence/", cookies) as socket:
            assert closing_code(socket) == 4401
