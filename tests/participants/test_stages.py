"""The stages before the votes and after them: questions, instructions, the check that they were understood.

Practice: the researcher's own pairs before the votes, with feedback, remembered pair by pair.
"""

import pytest
from django.test import Client

from prefmh_web.campaigns.models import Lease, Vote, Voter
from prefmh_web.participants import consent
from prefmh_web.participants.models import Participant, Participation
from prefmh_web.tasks import settle_parts
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, make_config
from tests.support.people import (
    CODES,
    CODES_OF_ALL,
    PICTURE,
    WHOLE,
    arrive,
    go_on,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    stage_path,
    vote,
)
from tests.support.records import assert_replay_passes, everything_in, export_to

ABOUT = {"stage": "questions", "answer-role": "student", "answer-age": "30", "answer-mood": "2"}
READ = {"stage": "instructions"}
UNDERSTOOD = {"stage": "comprehension", "answer-check_0": "both", "answer-try": "0"}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, votes_per_person=2, protocol=WHOLE, codes=CODES_OF_ALL)


def test_every_stage_is_passed_in_turn_up_to_the_code(study):
    browser = arrive(study, prolific("anna"))
    assert "What are you?" in page_of(browser, study, "vote/")
    page = go_on(browser, study, ABOUT)
    assert "<em>both</em>" in page
    assert f'src="{PICTURE}"' in page
    assert "What do you read?" in go_on(browser, study, READ)
    assert 'id="question"' in go_on(browser, study, UNDERSTOOD)
    vote(browser, study, times=2)
    page = page_of(browser, study, "vote/")
    assert "A few last questions" in page
    assert CODES["completed"] not in page
    assert "Anything else?" in page_of(browser, study)
    page = go_on(browser, study, {"stage": "last-questions", "answer-comment": "No, thanks"})
    assert "C0MPLETE" in page
    assert "<strong>taste</strong>" in page
    part = Participation.objects.get()
    assert (part.stage, part.outcome, part.code) == ("end", "completed", "C0MPLETE")
    assert {name: given["answer"] for name, given in part.answers.items()} == {
        "role": "student", "age": "30", "mood": "2", "comment": "No, thanks"
    }  # fmt: skip
    # And it stays so for whoever comes back, on whatever device.
    assert "C0MPLETE" in come_back(study)


def come_back(campaign, person: str = "anna") -> str:
    """Come again on another device, and return what is seen."""
    browser = Client()
    browser.get(invitation_path(campaign), prolific(person))
    return browser.post(invitation_path(campaign), follow=True).content.decode()


def test_nobody_votes_before_the_stages_are_passed(study):
    browser = arrive(study, prolific("anna"))
    browser.post(f"{invitation_path(study)}vote/", {"choice": "continue"})
    assert not Lease.objects.exists()
    go_on(browser, study, UNDERSTOOD, READ, {"stage": "votes"}, {"stage": "end"}, {"stage": "nonsense"}, {})
    assert Participation.objects.get().stage == "questions"
    assert "What are you?" in page_of(browser, study, "vote/")
    assert not Lease.objects.exists()


def test_who_comes_back_on_another_device_goes_on_where_they_stopped(study):
    browser = arrive(study, prolific("anna"))
    go_on(browser, study, ABOUT, READ)
    phone = arrive(study, prolific("anna", session="s2"))
    assert "What do you read?" in page_of(phone, study, "vote/")
    assert 'id="question"' in go_on(phone, study, UNDERSTOOD)
    assert pair_of(browser, study) == pair_of(phone, study)
    # A page that was sent before is no step back, and its answers change nothing.
    go_on(browser, study, ABOUT | {"answer-role": "other"})
    assert Participation.objects.get().stage == "votes"
    assert Participation.objects.get().answers["role"]["answer"] == "student"


@pytest.mark.parametrize("fields", [{"answer-role": "other"}, {"answer-age": "17"}, {"answer-age": "66"}])
def test_who_is_not_eligible_cannot_take_part_and_no_second_answer_helps(study, fields):
    browser = arrive(study, prolific("anna"))
    assert "N0T" in go_on(browser, study, ABOUT | fields)
    assert "N0T" in go_on(browser, study, ABOUT)
    assert "N0T" in come_back(study)
    part = Participation.objects.get()
    assert (part.outcome, part.code) == ("not-eligible", "N0T")
    assert not Lease.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        *({"answer-role": value} for value in ("", "teacher", "student\0")),
        *({"answer-age": value} for value in ("old", "9" * 400)),
        {"answer-mood": "4"},
    ],
)
def test_what_is_missing_or_no_answer_is_asked_again_and_nothing_is_stored(study, fields):
    browser = arrive(study, prolific("anna"))
    page = go_on(browser, study, ABOUT | fields)
    assert "missing or cannot be read" in page
    assert 'class="errorlist"' in page
    assert Participation.objects.get().answers == {}
    assert Participation.objects.get().stage == "questions"


def test_the_instructions_may_be_misunderstood_so_often_and_no_more(study):
    browser = arrive(study, prolific("anna"))
    go_on(browser, study, ABOUT, READ)
    wrong = UNDERSTOOD | {"answer-check_0": "one"}
    assert "You may try once more" in go_on(browser, study, wrong)
    # No answer at all is no try, nor is the same page once more: loaded again, or a second click.
    go_on(browser, study, UNDERSTOOD | {"answer-check_0": ""})
    assert "You may try once more" in go_on(browser, study, wrong)
    # Nobody can guess on with it either.
    assert "You may try once more" in go_on(browser, study, UNDERSTOOD)
    assert Participation.objects.get().tries == 1
    assert "UNCLEAR" in go_on(browser, study, wrong | {"answer-try": "1"})
    assert "UNCLEAR" in go_on(browser, study, UNDERSTOOD)
    assert Participation.objects.get().outcome == "not-understood"
    assert not Lease.objects.exists()


def test_last_questions_that_nobody_answered_keep_nobody_from_their_pay(study):
    browser = arrive(study, prolific("anna"))
    go_on(browser, study, ABOUT, READ, UNDERSTOOD)
    vote(browser, study, times=2)
    settle_parts()
    part = Participation.objects.get()
    assert (part.outcome, part.code) == ("completed", "C0MPLETE")
    assert "A few last questions" in come_back(study)


def test_names_of_the_page_itself_may_be_names_of_questions(researcher):
    names = ("stage", "csrfmiddlewaretoken", "try")
    questions = [{"name": name, "text": f"{name}?", "kind": "text"} for name in names]
    study = recruited_campaign(researcher, protocol={"questions": questions})
    browser = arrive(study, prolific("anna"))
    page_of(browser, study)
    go_on(browser, study, {"stage": "questions"} | {f"answer-{name}": "x" for name in names})
    assert Participation.objects.get().stage == "votes"
    assert len(Participation.objects.get().answers) == 3


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
def practising(researcher):
    return recruited_campaign(researcher, protocol=PRACTICE)


def test_each_pair_is_answered_then_explained_up_to_the_next_stage(practising):
    browser = arrive(practising, prolific("anna"))
    page = page_of(browser, practising, "vote/")
    assert "pair 1 of 2" in page
    assert "Which is darker?" in page
    assert 'value="first" aria-label="Object 1: A dark night."' in page
    page = go_on(browser, practising, chosen("second"))
    assert "You chose object 2. Night is darker." in page
    assert 'name="answer-choice"' not in page
    page = go_on(browser, practising, read())
    assert "pair 2 of 2" in page
    assert "Which is better?" in page
    assert "Well seen." in go_on(browser, practising, chosen("second", 1))
    assert "Ready?" in go_on(browser, practising, read(1))
    assert Vote.objects.count() == 0


def test_an_answer_that_is_sent_twice_is_one_and_the_first_holds(practising):
    browser = arrive(practising, prolific("anna"))
    for side in ("first", "second", "first"):
        assert "That is right." in go_on(browser, practising, chosen(side))
    # A double click on “Next pair” does not pass over the next one.
    for _ in range(2):
        assert "pair 2 of 2" in go_on(browser, practising, read())
    [answer] = Participation.objects.get().practice
    assert answer["chosen_side"] == "first"


@pytest.mark.parametrize("fields", [chosen(""), chosen("both"), {"stage": "practice"}, read()])
def test_nobody_goes_on_without_an_answer(practising, fields):
    browser = arrive(practising, prolific("anna"))
    assert "pair 1 of 2" in go_on(browser, practising, fields)
    assert Participation.objects.get().practice == []
    assert browser.get(f"{invitation_path(practising)}vote/").url == stage_path(practising)


def test_molecules_are_drawn_for_those_who_take_part(researcher):
    pairs = [{"first": "CCC", "second": "CCCC", "answer": "second", "if_wrong": "Count the carbons."}]
    options = {"file": MOLECULES, "filename": "m.csv", "config": OF_MOLECULES}
    practising = recruited_campaign(researcher, protocol={"practice": pairs}, **options)
    browser = arrive(practising, prolific("anna"))
    picture = f"{invitation_path(practising)}practice/0/first/"
    assert f'src="{picture}"' in page_of(browser, practising, "vote/")
    assert browser.get(picture)["Content-Type"] == "image/svg+xml"
    assert browser.get(f"{invitation_path(practising)}practice/1/first/").status_code == 404
    assert Client().get(picture).status_code == 404
    go_on(browser, practising, chosen("second"), read())
    assert pair_of(browser, practising)


# One link for everyone, and the whole way: each browser is a participant without an id.


TEXT = "Do you *agree*?"
AGREE = {"consent": "agree", "version": consent.version_of(TEXT)}
CODES_OF_LINK = {"completed": "DONE", "no-consent": "N0"}


@pytest.fixture
def opened(researcher):
    fields = {
        "consent": TEXT,
        "codes": CODES_OF_LINK,
        "protocol": WHOLE,
        "return_address": "",
        "quota": 2,
        "votes_per_person": 1,
    }
    return recruited_campaign(researcher, recruiter="open", **fields)


def stranger(campaign) -> Client:
    """Open the link in a fresh browser."""
    browser = Client()
    assert TEXT[:5] in browser.get(invitation_path(campaign)).content.decode()
    return browser


def test_a_stranger_passes_every_stage_up_to_the_code(opened, tmp_path):
    browser = stranger(opened)
    assert not Participation.objects.exists()
    assert browser.post(invitation_path(opened), AGREE).url.endswith("/vote/")
    assert "What are you?" in page_of(browser, opened, "vote/")
    assert 'id="question"' in go_on(browser, opened, ABOUT, READ, UNDERSTOOD)
    vote(browser, opened)
    page_of(browser, opened, "vote/")
    assert "DONE" in go_on(browser, opened, {"stage": "last-questions"})
    # Whoever comes back in the same browser reads the code again, and is nobody new.
    assert "DONE" in browser.get(invitation_path(opened)).content.decode()
    assert "DONE" in browser.post(invitation_path(opened), AGREE, follow=True).content.decode()
    person = Participant.objects.get()
    [row] = payments_of(browser_of(opened.owner), opened)
    assert (row["external_id"], row["session_id"], row["outcome"], row["code"]) == ("", "", "completed", "DONE")
    path = export_to(opened, tmp_path)
    assert person.external_id not in everything_in(path)
    assert_replay_passes(path)


def test_each_browser_is_a_participant_and_each_gets_a_place_once(opened):
    browsers = [stranger(opened) for _ in range(3)]
    ends = []
    for browser in browsers:
        browser.post(invitation_path(opened), AGREE)
        # The button pressed twice, and the page opened again in between.
        browser.get(invitation_path(opened))
        browser.post(invitation_path(opened), AGREE)
        go_on(browser, opened, ABOUT, READ, UNDERSTOOD)
        ends.append("All places of this study are taken" in browser.get(invitation_path(opened)).content.decode())
    assert ends == [False, False, True]
    assert Participation.objects.count() == Voter.objects.count() == 2
    vote(browsers[0], opened)
    assert Vote.objects.get().voter == Voter.objects.order_by("pk")[0]


@pytest.mark.parametrize("erase", [{}, {"erase": "later"}])
def test_who_withdraws_has_left_for_good_and_once_forgotten_is_somebody_new(opened, erase):
    browser = stranger(opened)
    browser.post(invitation_path(opened), AGREE)
    go_on(browser, opened, ABOUT, READ, UNDERSTOOD)
    assert "You have withdrawn" in browser.post(f"{invitation_path(opened)}withdraw/", erase).content.decode()
    page = browser.get(invitation_path(opened)).content.decode()
    assert ("Your part has ended" in page) is not bool(erase)
    browser.post(invitation_path(opened), AGREE)
    assert (Voter.objects.count(), Participant.objects.count()) == (2 if erase else 1, 1)
