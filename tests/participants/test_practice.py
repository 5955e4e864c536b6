"""Practice: the researcher's own pairs before the votes, with feedback, remembered pair by pair."""

import pytest
from django.test import Client

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Vote
from prefmh_web.participants.models import Participation
from tests.support.campaigns import (
    arrive,
    go_on,
    invitation_path,
    make_config,
    make_draft,
    page_of,
    pair_of,
    prolific,
    recruited_campaign,
    set_study,
    stage_path,
)

PAIRS = [
    {"first": "A dark night.", "second": "A bright day.", "answer": "first", "if_wrong": "Night is darker."},
    {
        "first": "A lamp.",
        "second": "A cave.",
        "answer": "second",
        "question": 2,
        "if_wrong": "A cave is better.",
        "if_right": "Well seen.",
    },
]
PRACTICE = {"practice": PAIRS, "comprehension": [{"text": "Ready?", "options": ["no", "yes"], "right": "yes"}]}
MOLECULES = "smiles\nCCO\nc1ccccc1O\nCC(=O)O\nCCN\n"
OF_MOLECULES = make_config(space={"kind": "catalog", "objects": "molecules", "neighbours": 2})


def chosen(side: str, number: int = 0) -> dict[str, str]:
    return {"stage": "practice", "answer-step": str(number), "answer-choice": side}


def read(number: int = 0) -> dict[str, str]:
    return {"stage": "practice", "answer-step": f"{number}-answered"}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, protocol=PRACTICE)


def test_each_pair_is_answered_then_explained_up_to_the_next_stage(study):
    browser = arrive(study, prolific("anna"))
    page = page_of(browser, study, "vote/")
    assert "pair 1 of 2" in page
    assert "Which is darker?" in page
    assert 'value="first" aria-label="Object 1: A dark night."' in page
    page = go_on(browser, study, chosen("second"))
    assert "You chose object 2. Night is darker." in page
    assert 'name="answer-choice"' not in page
    page = go_on(browser, study, read())
    assert "pair 2 of 2" in page
    assert "Which is better?" in page
    assert "Well seen." in go_on(browser, study, chosen("second", 1))
    assert "Ready?" in go_on(browser, study, read(1))
    assert Vote.objects.count() == 0


def test_an_answer_that_is_sent_twice_is_one_and_the_first_holds(study):
    browser = arrive(study, prolific("anna"))
    for side in ("first", "second", "first"):
        assert "That is right." in go_on(browser, study, chosen(side))
    # A double click on “Next pair” does not pass over the next one.
    for _ in range(2):
        assert "pair 2 of 2" in go_on(browser, study, read())
    [answer] = Participation.objects.get().practice
    assert answer["chosen_side"] == "first"


@pytest.mark.parametrize("fields", [chosen(""), chosen("both"), {"stage": "practice"}, read()])
def test_nobody_goes_on_without_an_answer(study, fields):
    browser = arrive(study, prolific("anna"))
    assert "pair 1 of 2" in go_on(browser, study, fields)
    assert Participation.objects.get().practice == []
    assert browser.get(f"{invitation_path(study)}vote/").url == stage_path(study)


def test_molecules_are_drawn_for_those_who_take_part(researcher):
    pairs = [{"first": "CCC", "second": "CCCC", "answer": "second", "if_wrong": "Count the carbons."}]
    options = {"file": MOLECULES, "filename": "m.csv", "config": OF_MOLECULES}
    study = recruited_campaign(researcher, protocol={"practice": pairs}, **options)
    browser = arrive(study, prolific("anna"))
    picture = f"{invitation_path(study)}practice/0/first/"
    assert f'src="{picture}"' in page_of(browser, study, "vote/")
    assert browser.get(picture)["Content-Type"] == "image/svg+xml"
    assert browser.get(f"{invitation_path(study)}practice/1/first/").status_code == 404
    assert Client().get(picture).status_code == 404
    go_on(browser, study, chosen("second"), read())
    assert pair_of(browser, study)


@pytest.mark.parametrize(
    ("pair", "config", "reason"),
    [
        ({"first": "no molecule", "second": "CC"}, OF_MOLECULES, "is no molecule"),
        ({"first": "C", "second": "CC", "question": 3}, OF_MOLECULES, "at most 2: people answer so many"),
    ],
)
def test_a_campaign_whose_setup_has_changed_since_does_not_start_with_pairs_that_it_cannot_show(
    researcher, pair, config, reason
):
    draft = make_draft(researcher, file=MOLECULES, filename="m.csv", config=config)
    practice = [{"answer": "first", "if_wrong": "No."} | pair]
    set_study(draft, {"recruiter": "prolific", "protocol": {"practice": practice}, "codes": {"completed": "C"}})
    with pytest.raises(NotPossible, match=reason):
        lifecycle.start(draft)
    draft.refresh_from_db()
    assert draft.is_draft
