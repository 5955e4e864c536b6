"""The tab Results: samples, spreads, the methods paragraph, and that nobody joins any more."""

import csv
import io
import json
import re
from collections import Counter

import pytest
from django.conf import settings
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.results import figures_of, samples_in, shown_samples
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.console import methods
from prefmh_web.console.spreads import spreads_of
from tests.support.campaigns import make_campaign, make_recipe, voted_to_the_end

BURN_IN = 4


@pytest.fixture
def finished(researcher, idle_tasks):
    """A campaign with its last vote."""
    recipe = make_recipe(chains=2, steps=12, burn_in=BURN_IN)
    return voted_to_the_end(make_campaign(researcher, recipe=recipe))


def table(campaign, name: str) -> list[dict[str, str]]:
    """Return the rows of one table of the record."""
    text = "".join(export.csv_text(Snapshot.now(campaign), name))
    return list(csv.DictReader(io.StringIO(text)))


def numbers_in(text: str) -> Counter[float]:
    """Return every number of a text; letters with a digit (r0, s1) are names."""
    return Counter(float(each.replace(",", "")) for each in re.findall(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?", text))


def test_each_number_of_the_methods_paragraph_is_one_of_the_record(finished):
    """Computed anew from the exported files; a number too many or too few is found as well."""
    steps, votes = table(finished, "steps.csv"), table(finished, "votes.csv")
    recipe = json.loads(export.recipe(finished))
    counted = [vote for vote in votes if vote["number"]]
    moves = [step for step in steps if step["current"] != step["proposal"]]
    accepted = [step for step in moves if step["verdict"] == "accept"]
    kept = [row for row in table(finished, "samples.csv") if row["phase"] == "sampling"]
    expected = Counter([
        12,  # objects
        *(part["weight"] for part in recipe["kernel"]["parts"]),
        *(judge["budget"] for judge in recipe["judges"]),
        1, 1,  # of the rule
        recipe["chains"], recipe["steps"], len(steps), recipe["seed"], recipe["burn_in"], len(kept),
        len({vote["annotator"] for vote in counted}), len(counted),
        len(moves), len(accepted), round(100 * len(accepted) / len(moves), 1),
        finished.finished_at.day, finished.finished_at.year,
    ])  # fmt: skip
    written = methods.paragraph(finished, figures_of(finished))
    assert numbers_in(written.replace(f"prefmh {methods.version()}", "")) == expected, written
    assert f"prefmh {methods.version()}" in written
    for judge in recipe["judges"]:
        assert f"“{judge['question']}”" in written
    law = finished.target_law.partition("; ")[0]
    assert f"proportional to {law}" in written


def test_the_paragraph_and_the_citation_are_those_of_the_release():
    told = (settings.BASE_DIR / "CITATION.cff").read_text()
    assert f"version: {methods.version()}" in told
    for words in re.search(r'title: "(.*)"', told)[1].split(": "):
        assert words in methods.PAPER
    for name in re.findall(r"family-names: (\w+)", told):
        assert name in methods.PAPER


def test_samples_are_those_of_the_record_without_the_burn_in(signed_in, finished):
    rows = [row for row in table(finished, "samples.csv") if row["phase"] == "sampling"]
    expected = {(int(row["chain"]), int(row["step"])): int(row["state"]) for row in rows}
    shown = shown_samples(finished, samples_in(finished).values_list("pk", flat=True))
    assert {(each.step.chain.place, each.step.step): each.state.place for each in shown} == expected
    assert shown[0].step.step == 12
    for view in ("", "table"):
        asked = [{"view": view, "page": page} for page in (1, 2)]
        pages = [signed_in.get(reverse("console:results", args=[finished.pk]), each).content.decode() for each in asked]
        rows = [row for page in pages for row in re.findall(r"Chain (\d+), step (\d+)</a>", page)]
        assert sorted((int(chain), int(step)) for chain, step in rows) == sorted(expected)


def test_properties_are_spread_beside_draws_from_the_base_distribution(signed_in, finished):
    found = spreads_of(finished)
    assert (found.measured, found.drawn) == (16, 400)
    words = next(plot for plot in found.plots if plot.title == "words")
    assert [mark.label for mark in words.legend] == ["samples", "base distribution"]
    page = signed_in.get(reverse("console:properties", args=[finished.pk])).content.decode()
    assert "16 samples, evenly over all, beside 400 draws from the base distribution p0" in page


def test_where_the_base_distribution_cannot_be_drawn_the_page_says_so(researcher, idle_tasks):
    recipe = make_recipe(space={"kind": "molecules"}, kernel={"kind": "fragments"}, chains=2, steps=3)
    campaign = Campaign.objects.create(owner=researcher, name="Made", recipe=recipe)
    lifecycle.start(campaign)
    idle_tasks()
    voted_to_the_end(campaign)
    found = spreads_of(campaign)
    assert found.drawn == 0
    assert "nothing is drawn from it" in found.not_drawn
    assert found.measured == 6


def test_a_running_campaign_says_that_these_are_results_so_far(signed_in, campaign):
    page = signed_in.get(reverse("console:results", args=[campaign.pk])).content.decode()
    assert "results so far" in page
    assert "How to cite" not in page


def test_a_finished_campaign_leads_to_its_results_and_shows_no_link_any_more(signed_in, finished):
    page = signed_in.get(finished.get_absolute_url()).content.decode()
    assert reverse("console:results", args=[finished.pk]) in page
    token = finished.invitations.get().token
    for address in (finished.get_absolute_url(), reverse("console:edit", args=[finished.pk])):
        assert token not in signed_in.get(address).content.decode()
