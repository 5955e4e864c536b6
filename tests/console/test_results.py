"""The tab Results: samples, spreads, the methods paragraph, and that nobody joins any more.

Downloads of the record: kept by nobody on the way.

The overview: what its first line says, what its socket sends, and the pages of chains.

The tab Convergence: what it says is what the record says, it follows live, and its work is bounded.

Plots: what is drawn lies where the numbers say, its size is bounded, and somebody who does not see it is told.
"""

import json
import re
import sys
import uuid
from collections import Counter
from datetime import timedelta

import httpx
import numpy as np
import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Side, Vote, Voter
from prefmh_web.campaigns.monitoring.judging import Share
from prefmh_web.campaigns.monitoring.progress import progress_of
from prefmh_web.campaigns.monitoring.results import figures_of, samples_in, shown_samples
from prefmh_web.campaigns.proposals import scoring
from prefmh_web.campaigns.record import export
from prefmh_web.console.board import Board, Group
from prefmh_web.console.plots import MAX_POINTS, histogram, traces
from prefmh_web.console.results import paragraph, spreads_of, version
from sampler import tables
from sampler.diagnostics.chains import followed
from sampler.diagnostics.findings import findings
from sampler.diagnostics.report import diagnose
from tests.security.world import browser_of
from tests.support.campaigns import create_draft, make_campaign, make_config, started_now, voted_to_the_end
from tests.support.installations import closing_code, open_socket
from tests.support.people import cookies_of
from tests.support.process import wait_until_idle
from tests.support.records import export_to

BURN_IN = 4


@pytest.fixture
def finished(researcher, idle_tasks):
    """A campaign with its last vote."""
    config = make_config(chains=2, steps=12, burn_in=BURN_IN)
    return voted_to_the_end(make_campaign(researcher, config=config))


def numbers_in(text: str) -> Counter[float]:
    """Return every number of a text; letters with a digit (r0, s1) are names."""
    return Counter(float(each.replace(",", "")) for each in re.findall(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?", text))


def test_each_number_of_the_methods_paragraph_is_one_of_the_record(finished, tmp_path):
    """Computed anew from the exported files; a number too many or too few is found as well."""
    record = sampler.read_record(export_to(finished, tmp_path))
    steps, votes = record["steps"], record["votes"]
    config = json.loads(export.as_json(finished.public_config))
    counted = [vote for vote in votes if vote["number"]]
    moves = [step for step in steps if step["current_state"] != step["proposal_state"]]
    accepted = [step for step in moves if step["verdict"] == "accept"]
    kept = [row for row in record["samples"] if row["phase"] == "sampling"]
    expected = Counter([
        12,  # objects
        *(part["weight"] for part in config["kernel"]["parts"]),
        *(judge["votes"] for judge in config["judges"]),
        1, 1,  # of the rule
        config["chains"], config["steps"], len(steps), config["seed"], config["burn_in"], config["burn_in"], len(kept),
        len({vote["voter"] for vote in counted}), len(counted),
        len(moves), len(accepted), round(100 * len(accepted) / len(moves), 1),
        finished.finished_at.day, finished.finished_at.year,
    ])  # fmt: skip
    written = paragraph(finished, figures_of(finished))
    assert numbers_in(written.replace(f"prefmh {version()}", "")) == expected, written
    assert f"prefmh {version()}" in written
    for judge in config["judges"]:
        assert f"“{judge['question']}”" in written
    distribution = finished.config.target_distribution.partition("; ")[0]
    assert f"proportional to {distribution}" in written


def test_the_methods_paragraph_does_not_say_why_the_length_was_changed(finished):
    changes.extend(finished, 3)
    written = paragraph(finished, figures_of(finished))
    assert "The length was changed 1 time after the start. The intervals do not allow for that." in written
    assert "look" not in written


def test_the_estimate_does_not_promise_that_strong_preferences_take_fewer_votes(signed_in, researcher):
    """`tests/sampler/test_planning.py` has how many they take."""
    draft = create_draft(owner=researcher, config=make_config())
    page = signed_in.get(draft.get_absolute_url()).content.decode()
    assert "With one question, strong preferences take up to a tenth more votes; with several, fewer." in page
    assert "the most votes per pair" not in page


def test_one_vote_is_one(researcher):
    campaign = make_campaign(researcher, config=make_config(judges=[{"question": "Which?", "votes": 1}]))
    assert "N = 1 vote on a pair." in paragraph(campaign, figures_of(campaign))


def test_a_question_that_is_asked_in_both_orders_has_its_votes_in_each(researcher):
    order_pair = [{"question": "Which?", "votes": 2, "order": f"proposal-{index}"} for index in ("first", "second")]
    campaign = make_campaign(researcher, config=make_config(judges=order_pair))
    written = paragraph(campaign, figures_of(campaign))
    assert written.count("N = 2 votes on a pair in each order of its objects.") == 1
    assert "the product is over the questions and their orders." in written


@pytest.mark.parametrize("end", [-sys.float_info.max, sys.float_info.max, 5e-324])
def test_a_trace_takes_whatever_number_a_scorer_may_give(end):
    plot = traces("score", [(0, np.array([0.0, end])), (1, np.array([0.5, 1.0]))])
    assert plot is not None
    assert traces("score", [(0, np.array([0.0, end]))]) is not None


def test_one_step_is_told_in_the_singular(researcher):
    draft = create_draft(
        owner=researcher, config=make_config(space=STORIES, kernel={"kind": "suffix"}, chains=1, steps=1)
    )
    assert dict(Board(draft).setup)["Chains"] == "1, 1 step each"


WARM = {"steps": 4, "grid": [1, 3], "properties": ["words"], "burn_in": 2, "patience_minutes": 5}
STORIES = {"kind": "texts", "scenarios": [0, 1, 2]}


@pytest.fixture
def half_way(researcher, idle_tasks):
    """Two questions, three prompts, a burn-in within a warm-up, a walk, open steps with votes, and a late vote."""
    walk = {"kind": "walk", "kernel": {"kind": "suffix"}, "length": 2, "warm_up": WARM}
    config = make_config(space=STORIES, kernel=walk, chains=6, steps=20, burn_in=2)
    campaign = create_draft(owner=researcher, name="Openings", config=config, is_seed_typed=True)
    lifecycle.start(campaign)
    people, rng = [Voter.objects.create(campaign=campaign) for _ in range(4)], np.random.default_rng(7)
    while Vote.objects.count() < 190:
        idle_tasks()
        if lease := leases.take(person := people[int(rng.integers(3))]):
            side = Side(lease.proposal_side)
            leases.answer(lease.key, person, side if rng.random() < 0.6 else side.other, 900)
    late = Vote.objects.filter(comparison__verdict__isnull=False).first()
    late.pk, late.key, late.number, late.voter = None, uuid.uuid4(), None, people[3]
    late.save()
    scoring.measure(campaign.pk)
    idle_tasks()
    return Campaign.objects.get(pk=campaign.pk)


def test_page_report_record_and_api_give_the_same_figures(signed_in, researcher, half_way, tmp_path):
    """Each is worked out anew from the record's tables: votes of all phases, states of the sampling phase."""
    record = sampler.read_record(export_to(half_way, tmp_path))
    votes = [vote for vote in record["votes"] if vote["number"]]
    decided = [step for step in record["steps"] if step["verdict"]]
    differed = [step for step in decided if step["current_state"] != step["proposal_state"]]
    accepted = [step for step in differed if step["verdict"] == "accept"]
    kept = [row for row in record["samples"] if int(row["step"]) > WARM["steps"] + WARM["burn_in"]]
    assert kept == [row for row in record["samples"] if row["phase"] == "sampling"]
    assert 0 < len(accepted) < len(differed) < len(decided)
    # Some votes are on open steps.
    assert len(votes) > sum(chain.votes for chain in half_way.chains.all())

    states = {(int(row["chain_index"]), int(row["step"])): int(row["state_index"]) for row in kept}
    samples = shown_samples(half_way, samples_in(half_way).values_list("pk", flat=True))
    assert {(each.step.chain.index, each.step.step): each.state.index for each in samples} == states
    for view in ("", "table"):
        asked = [{"view": view, "page": page} for page in range(1, len(kept) // 12 + 2)]
        listed = [
            signed_in.get(reverse("console:results", args=[half_way.pk]), each).content.decode() for each in asked
        ]
        rows = [row for page in listed for row in re.findall(r"Chain (\d+), step (\d+)</a>", page)]
        assert sorted((int(chain), int(step)) for chain, step in rows) == sorted(states)
    plain = ApiToken.make(researcher, "a reader", ApiToken.Scope.READ)
    told = Client().get(f"/api/campaigns/{half_way.pk}", headers={"Authorization": f"Bearer {plain}"}).json()
    figures = {"samples": len(kept), "differed": len(differed), "accepted": len(accepted), "votes": len(votes)}
    assert told["figures"] == figures | {"late": 1, "people": 3}

    # Chain c answers prompt c modulo 3.
    along = next(each for each in followed(record.but(samples=kept)).columns if each.name == "words").draws
    of_prompts = [[along[str(chain)] for chain in (prompt, prompt + 3)] for prompt in range(3)]
    found = [sampler.diagnostics.convergence(chains) for chains in of_prompts]
    r_hats = sorted((f"{each.r_hat:.3f}" for each in found), reverse=True)
    bulk, tail = (f"{min(getattr(each, name) for each in found):.0f}" for name in ("bulk_ess", "tail_ess"))
    # Pooled, it would be another number.
    assert f"{sampler.diagnostics.convergence([*along.values()]).r_hat:.3f}" not in r_hats

    share, counted = f"{100 * len(accepted) / len(differed):.1f} %", f"{len(votes)} votes that counted"
    shown = f"Accepted among the proposals that differed</dt><dd>{share}<small> of {len(differed)}</small>"
    left = sum(vote["chosen_side"] == "first" for vote in votes)
    later = [vote for vote in votes if int(vote["step"]) > WARM["steps"]]
    won, since = (f"{100 * sum(vote['for_proposal'] == '1' for vote in of) / len(of):.0f} %" for of in (votes, later))
    pages = {
        "results": [
            "results so far",
            shown,
            f">{len(kept)}<small> of the sampling phase, 6",
            f">{len(votes)}<small> and 1 late</small>",
        ],
        "campaign": [
            shown,
            f"Of the {counted}, {won} are",
            f"{since} of the {len(later)} votes that counted since then",
        ],
        "convergence": [f">{each}<" for each in (*r_hats, bulk, tail)],
    }
    for name, words in pages.items():
        page = signed_in.get(reverse(f"console:{name}", args=[half_way.pk])).content.decode()
        assert [each for each in words if each not in page] == []
    # The worst, then each prompt, the worst first.
    assert re.findall(r'data-label="R-hat">([^<]*)<', page) == [r_hats[0], *r_hats]
    header, *rows = page[page.index("<h2>Statistics") : page.index("</table>")].split("<tr>")[1:]
    assert {row.count("<td") for row in rows} == {header.count("<th")}
    rng = np.random.default_rng(1)
    report = "\n".join(diagnose(findings(record, rng), rng))
    reported = [
        f"{len(votes)} counted votes, 1 late",
        f"Accepted among the proposals that differed: {share} ({len(accepted)} of {len(differed)})",
        f"Samples: {len(kept)} of the sampling phase; left out are 24 of the burn-in, 12 of the warm-up",
        f"words: R-hat {r_hats[0]}, effective sample size {bulk} (bulk), {tail} (tail), from 6 chains of",
        f"first chosen in {left} of {len(votes)} votes",
    ]
    assert [each for each in reported if each not in report] == []
    written = [
        f"the {len(differed)} proposals that differed from the current object, {len(accepted)} ({share}) were accepted",
        f"steps of each chain (burn-in 2; warm-up 4, and 2 after it) are left out, which leaves {len(kept)}",
        f"3 people gave {counted}. Another 1 vote came after",
    ]
    assert [each for each in written if each not in paragraph(half_way, figures_of(half_way))] == []


def test_properties_are_spread_beside_draws_from_the_base_distribution(signed_in, finished):
    found = spreads_of(finished)
    assert (found["measured"], found["drawn"]) == (16, 400)
    words = next(plot for plot in found["plots"] if plot.title == "words")
    assert [mark.label for mark in words.legend] == ["samples", "base distribution"]
    page = signed_in.get(reverse("console:properties", args=[finished.pk])).content.decode()
    assert "16 samples, evenly over all, beside 400 draws from the base distribution p0" in page


def test_where_the_base_distribution_cannot_be_drawn_the_page_says_so(researcher, idle_tasks):
    config = make_config(space={"kind": "molecules"}, kernel={"kind": "fragments"}, chains=2, steps=3)
    campaign = started_now(create_draft(owner=researcher, name="Made", config=config))
    voted_to_the_end(campaign)
    found = spreads_of(campaign)
    assert found["drawn"] == 0
    assert "nothing is drawn from it" in found["not_drawn"]
    assert found["measured"] == 6


def test_a_finished_campaign_leads_to_its_results_and_shows_no_link_any_more(signed_in, finished):
    page = signed_in.get(finished.get_absolute_url()).content.decode()
    assert reverse("console:results", args=[finished.pk]) in page
    token = finished.invitations.get().token
    for address in (finished.get_absolute_url(), reverse("console:edit", args=[finished.pk])):
        assert token not in signed_in.get(address).content.decode()


@pytest.mark.parametrize("name", [*export.TABLES, tables.CONFIG, tables.PROPERTIES.file, "export.zip"])
def test_no_cache_on_the_way_keeps_a_download(live_site, campaign, researcher, name):
    cookies = {name: morsel.value for name, morsel in browser_of(researcher).cookies.items()}
    address = f"{live_site.url}{campaign.get_absolute_url()}files/{name}"
    answer = httpx.get(address, cookies=cookies, timeout=30)
    assert answer.status_code == 200
    assert answer.headers.get("Cache-Control") == "no-store"
    assert f'filename="twelve-texts-{name}"' in answer.headers["Content-Disposition"]
    assert len(answer.content) > 0
    # The same without its content, which is then not even computed.
    head = httpx.head(address, cookies=cookies, timeout=30)
    assert (head.status_code, head.content, head.headers.get("Cache-Control")) == (200, b"", "no-store")
    assert head.headers["Content-Type"] == answer.headers["Content-Type"]


def test_the_page_of_a_download_is_told_how_much_is_written_and_nobody_else_is(live_site, finished, researcher):
    cookies, address = cookies_of(browser_of(researcher)), f"{finished.get_absolute_url()}files/export.zip"
    with (
        open_socket(live_site.url, "/ws/downloads/12-34/", cookies) as socket,
        open_socket(live_site.url, "/ws/downloads/56-78/", cookies) as other,
    ):
        written = httpx.get(f"{live_site.url}{address}?progress=12-34", headers={"cookie": cookies})
        assert written.content.startswith(b"PK")
        assert float(socket.recv(timeout=10)) == 1
        with pytest.raises(TimeoutError):
            other.recv(timeout=0.2)
    with open_socket(live_site.url, "/ws/downloads/12-34/", "") as socket:
        assert closing_code(socket) == 4401


def test_the_shares_of_a_download_grow_to_the_whole(finished, monkeypatch):
    monkeypatch.setattr(export, "_ROWS_BETWEEN", 1)
    told: list[float] = []
    list(export.archive(finished, told.append))
    assert told == sorted(told)
    assert told[0] < 0.1
    assert told[len(told) // 2] == pytest.approx(0.5, abs=0.1)
    assert (told[-2], told[-1]) == (pytest.approx(0.99, abs=0.1), 1)


def test_time_left_comes_from_votes_and_not_from_steps_that_need_none(campaign, signed_in):
    """Thirty steps were decided just now, and by nobody: their proposals were the current object."""
    now = timezone.now()
    Campaign.objects.filter(pk=campaign.pk).update(started_at=now - timedelta(hours=1))
    chain = campaign.chains.get(index=0)
    step = chain.comparisons.get()
    same = {"current": step.current, "proposal": step.current, "log_r0": 0, "uniform": 0.5, "verdict": "accept"}
    of_chain = same | {"chain": chain, "chain_campaign": campaign, "chain_index": 0, "decided_at": now}
    Comparison.objects.bulk_create(Comparison(step=100 + number, **of_chain) for number in range(30))
    Chain.objects.filter(campaign=campaign).update(length=20, step=0)
    Chain.objects.filter(campaign=campaign, index=2).update(ended_at=now, step=10, votes=25)
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    said = "No vote came in the last five minutes, so nothing tells how long it takes. 40 steps are left."
    assert f"Nobody is online.</strong> {said}" in " ".join(page.split())
    # Ten votes in five minutes, the eleventh before; ten steps have taken 2.5 votes each, those of the open one apart.
    given = {"comparison": step, "judge": campaign.judges.get(index=0), "proposal_side": "left", "chosen_side": "left"}
    for number in range(1, 12):
        person = Voter.objects.create(campaign=campaign, online_until=now + timedelta(minutes=1))
        Vote.objects.create(key=uuid.uuid4(), voter=person, number=number, **given)
    Vote.objects.filter(number=11).update(cast_at=now - timedelta(minutes=6))
    found = progress_of(Campaign.objects.get(pk=campaign.pk))
    assert (found.lately, found.answers, found.steps_left) == (10, 36, 40)
    assert found.minutes_left == pytest.approx(40 * 3.6 / (10 / found.minutes))
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "at the rate of the last 5 min: 2.0 votes a minute. 40 steps are left." in " ".join(page.split())


def test_the_first_screen_shows_some_chains_and_leads_to_pages_of_all(signed_in, researcher, idle_tasks):
    made = make_campaign(researcher, config=make_config(chains=30, steps=5))
    page = signed_in.get(made.get_absolute_url()).content.decode()
    assert page.count('<article class="chain">') == 6
    assert "All 30 chains" in page
    address = reverse("console:chains", args=[made.pk])
    shown = [signed_in.get(address, {"page": number}).content.decode() for number in (1, 2)]
    assert [each.count('<article class="chain">') for each in shown] == [24, 6]


def test_the_socket_sends_a_part_again_only_if_it_has_changed(live_site, campaign, signed_in):
    with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies_of(signed_in)) as socket:
        first = socket.recv(timeout=10)
        for part in ("now", "heads", "trace", "details"):
            assert f'id="board-{part}"' in first
        lifecycle.pause(campaign)
        while 'data-status="paused"' not in (message := socket.recv(timeout=10)):
            pass
        assert 'id="board-heads"' not in message


def simulated(group: Group, part, seconds: int) -> list[tuple[int, int]]:
    """Return when a page got how many bytes, if all parts change every second."""
    sent = []
    for now in range(seconds):
        found = group.due(lambda name, at=now: part(name, at), now)
        sent += [(now, len(each)) for each in found]
    return sent


def test_no_minute_takes_more_than_the_allowance_however_much_changes():
    capacity, a_minute, size = 10_000, 20_000, 4_000
    group = Group(capacity, a_minute, ("one", "two", "three"))
    sent = simulated(group, lambda name, at: f"{name}{at}".ljust(size), 600)
    for start in range(540):
        assert sum(each for at, each in sent if start <= at < start + 60) <= capacity + a_minute + size
    # Without an allowance it would be twelve kB a second: the bound is one of this test's numbers.
    free = simulated(Group(1e12, 0, ("one", "two", "three")), lambda n, at: f"{n}{at}".ljust(size), 60)
    assert sum(each for _, each in free) > 20 * (capacity + a_minute + size)


def page_of(campaign, user, query=""):
    return browser_of(user).get(reverse("console:convergence", args=[campaign.pk]) + query)


def test_the_page_follows_while_objects_are_measured_and_until_the_end(finished, researcher):
    # The objects are measured because somebody looks.
    assert 'hx-trigger="every 5s"' in page_of(finished, researcher).content.decode()
    wait_until_idle()
    page = page_of(finished, researcher).content.decode()
    assert "Trace of" in page
    assert 'hx-trigger="every' not in page
    Campaign.objects.filter(pk=finished.pk).update(status=Campaign.Status.RUNNING)
    assert 'hx-trigger="every 60s"' in page_of(finished, researcher).content.decode()


_NUMBERS = re.compile(r"-?\d+")


def points_of(path):
    """The points of a path that `traces` has drawn, in units of the drawing."""
    head, _, steps = path.partition("l")
    first = [int(each) for each in _NUMBERS.findall(head)]
    moves = np.array([int(each) for each in _NUMBERS.findall(steps)]).reshape(-1, 2)
    return np.concatenate([[first[:2]], first[:2] + moves.cumsum(axis=0)]) if len(moves) else np.array([first[:2]])


def shown(plot):
    return render_to_string("console/_plot.html", {"plot": plot})


@pytest.mark.parametrize(
    ("chains", "steps", "drawn", "told", "max_bytes"),
    [
        (200, 1001, 200, "One step in 72 is drawn", 30_000),
        (5000, 50, 1000, "1,000 lines, one a chain, chosen evenly from 5,000 chains;", 60_000),
    ],
)
def test_a_page_stays_small_however_many_chains_are_drawn_and_says_what_is_left_out(
    chains, steps, drawn, told, max_bytes
):
    numbers = np.random.default_rng(3).normal(size=(chains, steps))
    plot = traces("words", list(enumerate(numbers)))
    lines = [points_of(f"M{path}") for mark in plot.marks for path in mark.path.split("M")[1:]]
    assert len(lines) == drawn
    assert sum(map(len, lines)) <= MAX_POINTS
    assert told in plot.description
    assert len(shown(plot)) < max_bytes


def test_large_numbers_and_small_shares_are_written_out():
    assert "between 0 and 1,234,568." in shown(traces("score", [(0, np.array([0.0, 1_234_567.9]))]))
    assert "median 12,346, 90 %" in shown(histogram("score", [12_345.6] * 3))
    assert str(Share(1, 400)).startswith("1 of 400 (0.2 %")


def test_who_does_not_see_a_plot_is_told_what_it_shows_and_labels_are_escaped():
    page = shown(traces("<b>Words</b>", [(0, np.array([1.0, 2.0]))]))
    assert 'role="img" aria-label="Trace of &lt;b&gt;Words&lt;/b&gt;. 1 line, one a chain; ' in page
    assert "the numbers lie between 1 and 2." in page
    assert "chain 0" in page
    assert "<b>" not in page
    assert "style=" not in page
