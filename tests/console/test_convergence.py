"""The tab Convergence: what it says is what the record says, it follows live, and its work is bounded."""

import re

import numpy as np
import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Comparison, Measured
from prefmh_web.campaigns.monitoring.convergence import Followed, follow
from prefmh_web.campaigns.monitoring.trajectories import Trajectories, accepted_since, trajectories_of
from prefmh_web.campaigns.proposals import measuring
from prefmh_web.console.consumer import ConvergenceConsumer
from tests.console.test_overview import cookies_of
from tests.security.world import browser_of
from tests.support.campaigns import make_campaign, make_config, make_draft, voted_to_the_end, wait_until_idle
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


def test_a_chain_that_has_opened_late_does_not_let_the_steps_of_the_others_be_read_again(finished):
    late, *others = finished.chains.order_by("place").values_list("pk", flat=True)
    found = accepted_since({late: 0, others[0]: 39, others[1]: 40})
    accepted = Comparison.objects.filter(verdict="accept")
    expected = {*accepted.filter(chain=late), *accepted.filter(chain=others[0], step=40)}
    assert set(found) == expected
    assert {step.chain_id for step in found} >= {late}


def test_many_chains_are_asked_for_in_few_groups(finished):
    last = {key: key % 7 for key in range(1, 5001)}
    [condition] = [str(accepted_since(last).query)]
    assert condition.count(" IN ") == 20


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


def test_every_chain_is_drawn_and_its_acceptance_is_told(finished, researcher):
    measured(finished)
    page = page_of(finished, researcher, "?properties=words&properties=readability").content.decode()
    for title in ("Trace of words", "Ranks of words", "Trace of readability", "Ranks of readability"):
        assert page.count(f"<figcaption>{title}</figcaption>") == 1
    trace = re.search(r'<svg class="plot-area".*?</svg>', page, re.S)[0]
    assert re.findall(r"<title>(.*?)</title>", trace) == ["chain 0", "chain 1", "chain 2"]
    chain = finished.chains.get(place=0)
    assert f'data-label="Share accepted">{100 * chain.accepted / chain.moves:.1f} %' in page


def test_equal_draws_share_the_ranks_that_belong_to_their_number(finished):
    found = follow(measured(finished), "words", 11)
    draws = np.concatenate([numbers for _, numbers in found.draws])
    for (_, numbers), (_, ranks) in zip(found.draws, found.ranks, strict=True):
        for value in set(numbers):
            middle = (draws < value).sum() + ((draws == value).sum() - 1) / 2
            assert ranks[np.sort(numbers) == value].mean() == pytest.approx(middle / (len(draws) - 1))


def test_objects_are_measured_once_and_not_by_the_page(finished, researcher, monkeypatch):
    page = page_of(finished, researcher)
    assert "0 of" in page.content.decode()
    wait_until_idle()
    stored = Measured.objects.count()
    assert stored == trajectories_of(finished).visited
    assert "objects are measured" not in page_of(finished, researcher).content.decode()
    measuring.measure(finished.pk)
    assert Measured.objects.count() == stored


def test_an_object_without_a_number_hides_only_what_comes_after_it(finished, researcher):
    measured(finished)
    chain = finished.chains.get(place=1)
    moved = Comparison.objects.filter(chain=chain, verdict="accept").order_by("step").last()
    Measured.objects.filter(state=moved.proposal).update(numbers={})
    # As another process does, which has not read the number before.
    fresh = Trajectories(finished.pk, {}, ("words",))
    fresh.read()
    found = follow(fresh, "words", 1)
    along = dict(found.chains)
    lost = {place: 41 - len(numbers) for place, numbers in along.items()}
    assert lost[1] > 0
    assert found.missing == sum(lost.values())
    assert all(along[c].tolist() == words_along(finished, c)[: 41 - lost[c]] for c in range(3))


def test_more_properties_than_a_page_shows_are_refused(finished, researcher):
    names = sampler.properties_of_kind("texts")[:5]
    answer = page_of(finished, researcher, "?" + "&".join(f"properties={name}" for name in names))
    assert answer.status_code == 400
    assert "at most 3 properties" in answer.content.decode()


def test_a_draft_has_no_such_page(researcher):
    draft = make_draft(researcher)
    assert page_of(draft, researcher).url == draft.get_absolute_url()


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


def test_a_large_page_is_sent_less_often():
    consumer = ConvergenceConsumer()
    assert consumer._pause_after("x" * 1_000) == 5
    for size in (10_000, 50_000, 400_000):
        assert size * 60 / consumer._pause_after("x" * size) <= 45_000


@pytest.mark.parametrize(
    ("means", "count", "said"),
    [
        ((0, 5), 500, "extend the campaign, or let the next one walk farther"),
        ((0, 0), 60, "few independent samples: extend the campaign"),
        ((0, 0), 3000, "enough for this property"),
        ((0,), 500, "nothing to be compared with"),
    ],
)
def test_the_verdict_says_what_to_do(means, count, said):
    rng = np.random.default_rng(11)
    chains = tuple((place, rng.normal(mean, 1, count)) for place, mean in enumerate(means))
    assert said in Followed("words", chains, 0, 0).verdict
