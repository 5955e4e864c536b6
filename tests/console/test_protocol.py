"""Setting up what is asked of people beside their votes."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import Protocol
from tests.participants.test_stages import ABOUT, MOLECULES, READ, UNDERSTOOD
from tests.support.campaigns import (
    WHOLE,
    archive,
    arrive,
    content_of,
    go_on,
    make_config,
    make_draft,
    picture,
    prolific,
    recruited_campaign,
    set_study,
)

ROLE = {"text": "What are you?", "name": "role", "kind": "choice", "options": "student\r\nother", "is_required": "on"}
AGE = {
    "text": "How old are you?",
    "name": "age",
    "kind": "number",
    "is_required": "on",
    "eligible_from": "18",
    "eligible_to": "65",
}
PAIR = {"first": " A dark night. ", "second": "A bright\r\nday.", "answer": "first", "question": "1"}
EXPLAINED = PAIR | {"if_wrong": "Night is darker."}
SCALE = {"text": "How are you?", "name": "mood", "kind": "scale", "least": "1", "most": "3", "is_required": "on"}
CHECK = {"text": "What do you read?", "options": "one\r\nboth", "right": "both"}
TEXTS = {"instructions": "Read *both*.", "tries": "3", "debriefing": "Thanks", "check_share": "10", "gold_share": "0"}
TEXTS |= {"checks_may_fail": "2", "checks_end": "on", "repeat_share": "0"}
TEXTS |= {"wait_minutes": "10"}


@pytest.fixture
def draft(researcher):
    found = make_draft(researcher)
    set_study(found, {"recruiter": "prolific"}, ())
    return found


def path_of(campaign) -> str:
    return reverse("console:protocol", args=[campaign.pk])


def posted(questions=(), comprehension=(), practice=(), gold=(), **texts) -> dict[str, str]:
    """Return what a browser sends: each row by its number."""
    fields = TEXTS | texts
    rows_of = {"questions": questions, "comprehension": comprehension, "practice": practice, "gold": gold}
    for name, rows in rows_of.items():
        fields |= {f"{name}.{number}.{key}": value for number, row in enumerate(rows) for key, value in row.items()}
    return fields


def save(owner, campaign, **rows) -> str:
    return owner.post(path_of(campaign), posted(**rows), follow=True).content.decode()


def stored() -> Protocol:
    return Campaign.objects.get().config.study.protocol


def test_a_row_that_is_emptied_is_taken_out(owner, draft):
    save(owner, draft, questions=[ROLE, AGE])
    rows = posted(questions=[dict.fromkeys(ROLE, "") | {"kind": "choice"}, AGE])
    assert "Saved." in owner.post(path_of(draft), rows, follow=True).content.decode()
    assert [question.name for question in stored().questions] == ["age"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"questions": [ROLE | {"name": "My role"}]}, "String should match pattern"),
        ({"questions": [ROLE | {"options": "student"}]}, "at least two different options"),
        ({"questions": [ROLE | {"eligible": "teacher"}]}, "“teacher” is not an option"),
        ({"questions": [ROLE | {"places": "teacher: 3"}]}, "“teacher” is not an option"),
        ({"questions": [ROLE | {"eligible": "student", "is_required": ""}]}, "must be required"),
        ({"questions": [ROLE | {"eligible": "student", "is_last": "on"}]}, "Ask this question before them"),
        ({"questions": [AGE | {"eligible_from": "adult"}]}, "Enter a whole number"),
        ({"questions": [AGE | {"eligible_from": "9" * 4400}]}, "Enter a whole number"),
        ({"questions": [AGE | {"eligible_from": "66"}]}, "the range ends before it begins"),
        ({"questions": [ROLE | {"places": "student: " + "9" * 4400}]}, "is not a name and a number"),
        ({"questions": [AGE | {"least": "9", "most": "3"}]}, "greater than the greatest"),
        ({"questions": [AGE | {"kind": "scale", "eligible_from": "", "eligible_to": ""}]}, "first and the last point"),
        ({"questions": [SCALE | {"options": "bad"}]}, "two lines, or none"),
        ({"questions": [ROLE, ROLE]}, "Two questions have the name “role”"),
        ({"comprehension": [CHECK | {"right": "none"}]}, "must be one of the options"),
        ({"instructions": "x" * 300_001}, "at most 300000 characters"),
        ({"practice": [EXPLAINED | {"second": "A dark night."}]}, "The two objects are the same"),
        ({"gold": [PAIR]}, "Gold pairs need to be shown at a rate above 0"),
        ({"gold_share": "5"}, "Gold pairs need to be shown at a rate above 0"),
        ({"gold": [PAIR], "gold_share": "45"}, "at most 50 can be followed"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_and_nothing_is_saved(owner, draft, rows, message):
    page = save(owner, draft, **rows)
    assert message in page
    assert "Saved." not in page
    assert stored().is_empty


def test_answers_are_downloaded_by_the_numbers_of_the_record(owner, researcher):
    study = recruited_campaign(researcher, protocol=WHOLE)
    browser = arrive(study, prolific("anna"))
    go_on(browser, study, ABOUT | {"answer-mood": "3"}, READ, UNDERSTOOD)
    answer = owner.get(reverse("console:answers", args=[study.pk]))
    assert "answers.csv" in answer["Content-Disposition"]
    text = content_of(answer).decode()
    assert text.startswith("\ufeffvoter,question,answer,answered_at")
    assert ",mood,3," in text
    assert "anna" not in text


IMAGES = archive({f"{colour}.png": picture(colour) for colour in ("red", "blue", "green", "grey")})
IN_SPACE = "The red house stood there."


def test_an_object_on_which_people_vote_is_warned_about_on_practice_and_gold_pairs(owner, draft):
    save(owner, draft, practice=[EXPLAINED | {"second": IN_SPACE}])
    page = owner.get(path_of(draft)).content.decode()
    assert f"are objects of the campaign, too: “{IN_SPACE}”." in page
    assert "cannot tell" not in page


def test_pairs_of_molecules_are_read_as_smiles_and_images_have_none(owner, researcher):
    for objects, file, name in (("molecules", MOLECULES, "m.csv"), ("images", IMAGES, "i.zip")):
        space = {"kind": "catalog", "objects": objects, "neighbours": 2}
        draft = make_draft(researcher, file=file, filename=name, config=make_config(space=space))
        set_study(draft, {"recruiter": "prolific"}, ())
        page = save(owner, draft, gold=[PAIR | {"first": "OCC", "second": "CCCC"}], gold_share="5")
        protocol = Campaign.objects.get(pk=draft.pk).config.study.protocol
        if objects == "images":
            assert not protocol.own_pairs
            assert "this campaign can have neither" in page
        else:
            assert protocol.gold[0].first == "CCO"
            assert "is not a SMILES" in save(owner, draft, gold=[PAIR], gold_share="5")
            assert "“CCO”" in owner.get(path_of(draft)).content.decode()
