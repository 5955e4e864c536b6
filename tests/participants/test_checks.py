"""Attention checks: trials of their own, drawn without a look at the pairs, whose answers are never votes."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone
from scipy.stats import binom

from prefmh_web.campaigns.models import Comparison, Lease, Vote, Voter
from prefmh_web.participants import attention
from prefmh_web.participants.models import Participation
from prefmh_web.participants.people import people_of
from sampler.chain import Purpose, stream
from sampler.judges import InsertedTrial, TrialShares, check_after
from sampler.judges import presentation as drawing
from tests.participants.test_stages import MOLECULES, come_back
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, make_config
from tests.support.people import (
    CODES_OF_ALL,
    answer_check,
    arrive,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    screen_of,
    vote,
    vote_until_check,
)
from tests.support.records import assert_record_is_whole, checked_export, export_to, table

OFTEN = {"check_share": 0.5, "checks_may_fail": 1}
MANY = {"config": make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=4, steps=30)}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, protocol=OFTEN, codes=CODES_OF_ALL, **MANY)


def test_a_check_says_what_to_choose_and_its_answer_is_no_vote(study, tmp_path):
    browser = arrive(study, prolific("anna"))
    check = vote_until_check(browser, study)
    page = page_of(browser, study, "vote/")
    assert f"Attention check: choose object {1 + (check.expected_side == 'second')}" in page
    assert "Skip this pair" not in page
    # A record that is written meanwhile says that it is not answered yet.
    assert [row["passed"] for row in table(export_to(study, tmp_path), "checks.csv")] == [""]
    votes, asked = Vote.objects.count(), Lease.objects.count()
    assert not Lease.objects.filter(ended_at=None).exists()
    answer_check(browser, study)
    assert Vote.objects.count() == votes
    check.refresh_from_db()
    assert (check.is_passed, check.elapsed_ms, check.after_votes) == (True, 900, votes)
    assert pair_of(browser, study)
    assert Lease.objects.count() == asked + 1


def test_a_check_stays_until_it_is_answered_on_every_device_and_is_answered_once(study):
    browser = arrive(study, prolific("anna"))
    check = vote_until_check(browser, study)
    phone = arrive(study, prolific("anna", session="s2"))
    assert screen_of(phone, study).check == check
    path = f"{invitation_path(study)}vote/"
    phone.post(path, {"lease": str(check.key), "choice": "skip"})
    assert screen_of(phone, study).check == check
    answer_check(phone, study)
    wrong = {"first": "second", "second": "first"}[check.expected_side]
    assert browser.post(path, {"lease": str(check.key), "choice": wrong}).status_code == 302
    check.refresh_from_db()
    assert check.is_passed
    # Nobody else answers it.
    other = arrive(study, prolific("ben"))
    assert pair_of(other, study)
    assert other.post(path, {"lease": str(check.key), "choice": wrong}).status_code == 404


def test_too_many_failed_ones_end_the_part_and_what_was_voted_stays(study, tmp_path):
    browser = arrive(study, prolific("anna"))
    vote_until_check(browser, study)
    answer_check(browser, study, rightly=False)
    assert Participation.objects.get().outcome == ""
    vote(browser, study)
    vote_until_check(browser, study)
    votes = Vote.objects.count()
    answer_check(browser, study, rightly=False)
    part = Participation.objects.get()
    assert (part.outcome, part.code, part.stage) == ("checks-failed", "CHECKS", "end")
    assert "CHECKS" in come_back(study)
    assert not Lease.objects.filter(ended_at=None).exists()
    assert Vote.objects.count() == votes
    # The campaign goes on with others, and stands up.
    vote(arrive(study, prolific("ben")), study)
    [row, _] = payments_of(browser_of(study.owner), study)
    assert (row["checks_passed"], row["checks_failed"], row["paid"]) == ("0", "2", "not")
    assert_record_is_whole(study)
    export = checked_export(study, tmp_path)
    assert [each["passed"] for each in table(export, "checks.csv")] == ["0", "0"]


def test_failed_ones_may_only_be_noted(researcher):
    protocol = {"check_share": 0.5, "checks_may_fail": 0, "checks_end": False}
    study = recruited_campaign(researcher, protocol=protocol, **MANY)
    browser = arrive(study, prolific("anna"))
    vote_until_check(browser, study)
    answer_check(browser, study, rightly=False)
    assert pair_of(browser, study)


def test_checks_come_as_often_as_declared_and_from_a_stream_of_their_own():
    """Exact binomial bounds of one in a million, two-sided."""
    drawn = trials(TrialShares(0.1))
    count = sum(trial is not None for trial in drawn)
    assert binom.ppf(5e-7, 4_000, 0.1) <= count <= binom.ppf(1 - 5e-7, 4_000, 0.1)
    sides = [trial.side for trial in drawn if trial]
    assert binom.ppf(5e-7, count, 0.5) <= sides.count("first") <= binom.ppf(1 - 5e-7, count, 0.5)
    # The negative control: the same test rejects twice the share.
    assert sum(trial is not None for trial in trials(TrialShares(0.2))) > binom.ppf(1 - 5e-7, 4_000, 0.1)
    # Once drawn, it is the same for ever, and so for whoever reads the record.
    assert drawn[:100] == [check_after(7, 1, votes, TrialShares(0.1)) for votes in range(1, 101)]
    assert check_after(7, 1, 0, TrialShares(1)) is None
    assert check_after(7, 1, 5, TrialShares()) is None


def trials(shares: TrialShares, golds: int = 0) -> list[InsertedTrial | None]:
    return [check_after(7, person, votes, shares, golds) for person in range(1, 41) for votes in range(1, 101)]


def test_a_person_sees_every_gold_pair_before_one_comes_again_on_either_side():
    shown = [trial for trial in trials(TrialShares(gold=0.2), 4) if trial]
    assert binom.ppf(5e-7, 4_000, 0.2) <= len(shown) <= binom.ppf(1 - 5e-7, 4_000, 0.2)
    for person in range(1, 11):
        drawn = [check_after(7, person, votes, TrialShares(gold=0.2), 4) for votes in range(1, 101)]
        golds = [trial.gold for trial in drawn if trial]
        assert sorted(golds[:4]) == [0, 1, 2, 3]
        assert golds[4:8] == golds[:4]
    assert {trial.side for trial in shown} == {"first", "second"}


def golds_met(person: int, golds: int = 5, seed: int = 7) -> list[int]:
    drawn = (check_after(seed, person, votes, TrialShares(gold=0.2), golds) for votes in range(1, 151))
    return [trial.gold for trial in drawn if trial]


def everybody_meets_the_same_first_pairs() -> bool:
    return len({tuple(golds_met(person)[:5]) for person in range(1, 13)}) == 1


def test_everybody_meets_the_gold_pairs_in_one_order_of_the_campaign():
    assert everybody_meets_the_same_first_pairs()
    # However few somebody meets, they are the first ones of that order.
    order = golds_met(1)[:5]
    for person in range(1, 13):
        few = [t.gold for votes in range(1, 12) if (t := check_after(7, person, votes, TrialShares(gold=0.2), 5))]
        assert few == (order * 3)[: len(few)]
    # When they come is each person's own, and the order is another under another seed.
    moments = {
        tuple(bool(check_after(7, person, votes, TrialShares(gold=0.2), 5)) for votes in range(1, 31))
        for person in range(1, 13)
    }
    assert len(moments) > 8
    assert len({tuple(golds_met(1, seed=seed)[:5]) for seed in range(20)}) > 5


def test_an_order_drawn_for_each_person_is_seen(monkeypatch):
    """The control."""

    def of_the_person(seed, voter, votes, shares, golds):
        ranks = stream(seed, voter, 0, Purpose.CHECKS).random(golds)
        return int(ranks.argsort()[_seen(seed, voter, votes, shares) % golds])

    def _seen(seed, voter, votes, shares):
        earlier = (stream(seed, voter, each, Purpose.CHECKS).random() for each in range(1, votes))
        return sum(comes < shares.gold for comes in earlier)

    monkeypatch.setattr(drawing, "_gold", of_the_person)
    assert not everybody_meets_the_same_first_pairs()


GOLD = [
    {"first": "A dark night.", "second": "A bright day.", "answer": "first"},
    {"first": "A white wall.", "second": "A deep cave.", "answer": "second"},
]
RIGHT = {"A dark night.", "A deep cave."}
ALL_GOLD = {"gold": GOLD, "gold_share": 0.5, "checks_may_fail": 1}


@pytest.fixture
def golden(researcher):
    return recruited_campaign(researcher, protocol=ALL_GOLD, codes=CODES_OF_ALL, **MANY)


def option(browser, campaign, side: str) -> str:
    """Return what stands on a side of somebody's page."""
    left, right = screen_of(browser, campaign).context["options"]
    return (left if side == "first" else right).content


def shape_of(page: str) -> list[str]:
    """Return the page's tags: what tells a pair from another thing, whatever its words."""
    return re.findall(r"<(\w+)", re.sub(r"<br>|<span.*?</span>", "", page.split('id="panel"')[1], flags=re.DOTALL))


def test_people_are_asked_the_same_gold_pairs_and_the_page_says_how_far_they_agree(golden):
    met = {}
    for name, rightly in (("anna", [True, True]), ("ben", [True, False]), ("cleo", [True])):
        browser, met[name] = arrive(golden, prolific(name)), []
        for is_right in rightly:
            met[name].append(vote_until_check(browser, golden).gold)
            answer_check(browser, golden, rightly=is_right)
            vote(browser, golden)
    first, second = met["anna"]
    assert met == {"anna": [first, second], "ben": [first, second], "cleo": [first]}
    found = {each.number: each for each in attention.answers_in(golden)}
    as_told = {
        number: each.first if GOLD[number]["answer"] == "first" else each.second for number, each in found.items()
    }
    assert {number: (as_told[number], each.people) for number, each in found.items()} == {first: (3, 3), second: (1, 2)}
    # Of the pairs of people who answered the same pair, three of three agree on the first one and none on the second.
    assert attention.share_alike(found.values()) == 3 / 4
    page = browser_of(golden.owner).get(reverse("console:people", args=[golden.pk])).content.decode()
    section = page[page.index("Agreement on gold pairs") :]
    assert "chose the same object 75 times in 100" in section
    assert "100 % (3)" in section
    assert "50 % (1)" in section


def test_a_gold_check_looks_like_any_pair_and_the_right_object_counts_on_either_side(golden):
    browser, sides = arrive(golden, prolific("anna")), set()
    normal = page_of(browser, golden, "vote/")
    # Sides are drawn by the person's number: forty draws are all alike once in a trillion.
    for _ in range(40):
        check = vote_until_check(browser, golden)
        page = page_of(browser, golden, "vote/")
        assert "Which is darker?" in page
        assert "Skip this pair" in page
        assert shape_of(page) == shape_of(normal)
        assert option(browser, golden, check.expected_side) in RIGHT
        sides.add((check.gold, check.is_swapped))
        answer_check(browser, golden)
        check.refresh_from_db()
        assert check.is_passed
        if {gold for gold, _ in sides} == {0, 1} and {is_swapped for _, is_swapped in sides} == {True, False}:
            break
        vote(browser, golden)
    else:
        pytest.fail(f"not every pair on either side: {sides}")
    assert Participation.objects.get().outcome == ""


def test_failed_gold_checks_count_together_with_the_others_and_a_skipped_one_does_not(golden, tmp_path):
    browser = arrive(golden, prolific("anna"))
    first = vote_until_check(browser, golden)
    path = f"{invitation_path(golden)}vote/"
    browser.post(path, {"lease": str(first.key), "choice": "skip"})
    vote(browser, golden)
    for _ in range(2):
        assert Participation.objects.get().outcome == ""
        vote_until_check(browser, golden)
        answer_check(browser, golden, rightly=False)
        if Participation.objects.get().outcome == "":
            vote(browser, golden)
    assert Participation.objects.get().outcome == "checks-failed"
    [row] = payments_of(browser_of(golden.owner), golden)
    assert (row["checks_passed"], row["checks_failed"]) == ("0", "2")
    votes = Vote.objects.count()
    export = checked_export(golden, tmp_path)
    rows = table(export, "checks.csv")
    assert [(each["kind"], each["passed"]) for each in rows] == [("gold", ""), ("gold", ""), ("gold", "")]
    assert sorted(each["gold_index"] for each in rows[:2]) == ["0", "1"]
    assert Vote.objects.count() == votes == len(table(export, "votes.csv"))


def test_a_gold_molecule_is_drawn_for_its_person_only(researcher):
    gold = [{"first": "CCC", "second": "CCCC", "answer": "first"}]
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    options = {"file": MOLECULES, "filename": "m.csv", "config": MANY["config"] | {"space": space}}
    study = recruited_campaign(researcher, protocol={"gold": gold, "gold_share": 0.5}, **options)
    browser, other = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    check = vote_until_check(browser, study)
    address = f"/pairs/{check.key}/first/"
    assert browser.get(address)["Content-Type"] == "image/svg+xml"
    assert other.get(address).status_code == 403


STEADY = {"repeat_share": 0.5, "checks_may_fail": 0}


def open_pairs() -> set[frozenset[str]]:
    asked = Comparison.objects.filter(verdict=None)
    return {frozenset(pair) for pair in asked.values_list("current__content", "proposal__content")}


def answer_repeat(browser, campaign, *, alike: bool) -> None:
    """Choose the object that was voted for, or the other one."""
    check = screen_of(browser, campaign).check
    assert check.kind == "repeat"
    voted = Vote.objects.get(key=check.lease_id)
    chosen = check.lease.first if voted.chosen_side == "first" else check.lease.second
    side = "first" if (option(browser, campaign, "first") == chosen.content) == alike else "second"
    browser.post(f"{invitation_path(campaign)}vote/", {"lease": str(check.key), "choice": side})


def test_a_repeat_is_an_earlier_decided_pair_and_never_a_vote_and_never_ends_a_part(researcher, tmp_path):
    study = recruited_campaign(researcher, protocol=STEADY, **MANY)
    browser, agreed, keys, swapped = arrive(study, prolific("anna")), [], set(), set()
    normal = page_of(browser, study, "vote/")
    # On which side the proposal stands is drawn by the voter's number: until both have come.
    while len(agreed) < 6 or len(swapped) < 2:
        check = vote_until_check(browser, study)
        page, votes = page_of(browser, study, "vote/"), Vote.objects.count()
        assert shape_of(page) == shape_of(normal)
        comparison = check.lease.comparison
        pair = {comparison.current.content, comparison.proposal.content}
        assert comparison.verdict
        assert {option(browser, study, "first"), option(browser, study, "second")} == pair
        assert frozenset(pair) not in open_pairs()
        agreed.append(len(agreed) % 3 == 0)
        answer_repeat(browser, study, alike=agreed[-1])
        keys.add(check.lease_id)
        swapped.add(check.is_swapped)
        assert Vote.objects.count() == votes
        vote(browser, study)
    assert len(keys) == len(agreed)
    assert Participation.objects.get().outcome == ""
    assert [row["checks_failed"] for row in payments_of(browser_of(study.owner), study)] == ["0"]
    [person] = people_of(study)
    assert (person.checks_passed, person.checks_failed) == (0, 0)
    export = checked_export(study, tmp_path)
    rows = table(export, "checks.csv")
    assert [row["agreed"] for row in rows] == [str(int(each)) for each in agreed]
    assert {row["kind"] for row in rows} == {"repeat"}
    assert {row["passed"] for row in rows} == {""}
    assert {row["swapped"] for row in rows} == {"0", "1"}
    steps = {(row["chain_index"], row["step"]) for row in table(export, "steps.csv")}
    assert {(row["chain_index"], row["step"]) for row in rows} <= steps


def test_a_pair_that_some_chain_asks_at_this_moment_is_not_repeated(researcher):
    """With two objects every chain asks the same pair, so as long as one asks it nobody sees it once more."""
    space = {"kind": "catalog", "objects": "texts", "neighbours": 1}
    options = {"file": "text\none\ntwo\n", "config": MANY["config"] | {"space": space}}
    study = recruited_campaign(researcher, protocol=STEADY, **options)
    browser = arrive(study, prolific("anna"))
    vote(browser, study, times=12)
    voter = Voter.objects.get()
    assert Comparison.objects.exclude(verdict=None).count() > 2
    assert open_pairs() == {frozenset({"one", "two"})}
    assert attention.possible(voter) == []
    # The control: once no chain asks it, it can be.
    Comparison.objects.filter(verdict=None).update(verdict="reject", decided_at=timezone.now())
    assert len(attention.possible(voter)) == 11
