"""Models and people on hidden repeats: from votes and answers that the record has, and without one more request."""

from collections import Counter

import pytest
from django.db.models import Q

from prefmh_web.campaigns.models import Vote
from prefmh_web.campaigns.monitoring.judging import Share
from prefmh_web.participants.models import Check
from tests.flows.test_model_costs import QUESTION, asked, by_model, endpoint, script
from tests.participants.test_checks import screen_of
from tests.security.world import browser_of
from tests.support.record import assert_replay_passes, export_to, table
from tests.support.recruited import arrive, prolific, recruited_campaign, vote
from tests.support.stack import invitation_path, make_recipe

__all__ = ["endpoint", "script"]

PEOPLE = {"question": QUESTION, "budget": 1}
OFTEN = {"repeat_share": 0.5}


def study(researcher, *judges: dict, **protocol: object):
    recipe = make_recipe(judges=list(judges), chains=4, steps=30)
    return recruited_campaign(researcher, protocol=OFTEN | protocol, recipe=recipe)


def answer_repeats(campaign, names: tuple[str, ...], wanted: int) -> None:
    """Let people vote, and answer so many repeats each, by turns on either side; fewer if they run out of pairs."""
    for person in names:
        browser, answered = arrive(campaign, prolific(person)), 0
        while answered < wanted:
            visit = screen_of(browser, campaign).visit
            if (check := visit.check) is None:
                if visit.lease is None:
                    break
                vote(browser, campaign)
                continue
            side = ("left", "right")[answered % 2]
            browser.post(f"{invitation_path(campaign)}vote/", {"lease": str(check.key), "choice": side})
            answered += 1


def shown_of(researcher, campaign):
    """Return what the live page says of the one model."""
    page = browser_of(researcher).get(campaign.get_absolute_url())
    [row] = page.context["board"].on_repeats
    return row, page.content.decode()


def from_the_record(path, *, turned: bool = False) -> tuple[int, int, int]:
    """Return, from the files alone: pairs on which both agree, pairs compared, and pairs without a vote of the model.

    Args:
        turned: whether each repeat is taken for the other object: a count that the page must not give.
    """
    objects = {(row["chain"], row["step"]): (row["current"], row["proposal"]) for row in table(path, "steps.csv")}
    decided = {(row["chain"], row["step"]) for row in table(path, "steps.csv") if row["verdict"]}
    votes = table(path, "votes.csv")
    sides = {(row["annotator"], row["chain"], row["step"]): row["proposal_side"] for row in votes if row["annotator"]}
    people: dict[frozenset, Counter] = {}
    for row in table(path, "checks.csv"):
        if not row["chosen_side"]:
            continue
        step = row["chain"], row["step"]
        proposal_side = "right" if row["kind"] == "common" else sides[row["annotator"], *step]
        is_for = (row["chosen_side"] == proposal_side) != (row["swapped"] == "1")
        people.setdefault(frozenset(objects[step]), Counter())[objects[step][is_for != turned]] += 1
    model: dict[frozenset, Counter] = {}
    for row in votes:
        step = row["chain"], row["step"]
        if row["endpoint"] and row["number"] and step in decided:
            chosen = objects[step][row["for_proposal"] == "1"]
            model.setdefault(frozenset(objects[step]), Counter())[chosen] += 1

    def favourite(votes: Counter) -> str | None:
        ranked = [*votes.most_common(2), (None, 0)]
        return None if ranked[0][1] == ranked[1][1] else ranked[0][0]

    both = [(favourite(people[pair]), favourite(model[pair])) for pair in people.keys() & model.keys()]
    compared = [one == other for one, other in both if one and other]
    return sum(compared), len(compared), len(people.keys() - model.keys())


@pytest.mark.parametrize(("repeats", "wanted"), [("own", 6), ("common", 4)])
def test_the_live_page_compares_the_models_votes_with_peoples_repeats(
    researcher, endpoint, script, idle_tasks, tmp_path, repeats, wanted
):
    campaign = study(researcher, by_model(budget=1), PEOPLE, repeats=repeats)
    answer_repeats(campaign, ("anna", "ben"), wanted)
    before = len(asked(script, QUESTION))
    row, page = shown_of(researcher, campaign)
    path = export_to(campaign, tmp_path)
    agreed, compared, unasked = from_the_record(path)
    # How many can be compared, the model's own votes decide; of common pairs there are few, and people may be at a tie.
    assert compared or repeats == "common"
    assert (row.agreed, row.unasked) == (Share(agreed, compared) if compared else None, unasked)
    assert (f"agrees with people on {row.agreed}" in page) == bool(compared)
    # The same count with each answer turned is another one, or the test could not tell.
    assert compared - agreed == from_the_record(path, turned=True)[0]
    # Nobody is asked for it.
    assert len(asked(script, QUESTION)) == before
    assert_replay_passes(path)


def test_a_pair_that_the_model_was_not_asked_about_is_said_to_be_one(researcher, endpoint, script, idle_tasks):
    campaign = study(researcher, by_model(budget=1), PEOPLE)
    answer_repeats(campaign, ("anna",), 3)
    one = Check.objects.select_related("lease__comparison").first().lease.comparison
    # In whichever chain it stood, and whichever of the two was the proposal.
    pair = {one.current_id, one.proposal_id}
    same_pair = Q(comparison__current__in=pair, comparison__proposal__in=pair)
    Vote.objects.filter(same_pair, judge__endpoint__isnull=False).update(judge=campaign.judges.get(place=1))
    row, page = shown_of(researcher, campaign)
    assert row.unasked == 1
    assert "It was not asked about 1 of those pairs" in page


def test_a_model_of_another_question_is_compared_with_nobody(researcher, endpoint, script, idle_tasks):
    campaign = study(researcher, by_model(question="Which is older?", budget=1), PEOPLE)
    answer_repeats(campaign, ("anna",), 2)
    board = browser_of(researcher).get(campaign.get_absolute_url()).context["board"]
    assert board.judging
    assert list(board.on_repeats) == []


def test_where_nothing_was_repeated_the_page_says_nothing_of_repeats(researcher, endpoint, script, idle_tasks):
    campaign = study(researcher, by_model(budget=1), PEOPLE, repeat_share=0)
    vote(arrive(campaign, prolific("anna")), campaign, times=2)
    assert "Hidden repeats" not in browser_of(researcher).get(campaign.get_absolute_url()).content.decode()
