"""The preview as a participant: a draft as a participant would meet it, and nothing of it in the database.

The first pair on a draft's page: it is the one that voters will see.
"""

import re

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.urls import reverse

import sampler
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, State, Vote, Voter
from tests.console.test_pages import OF_TEXTS, form
from tests.participants.test_stages import PAIRS as PRACTICE
from tests.support.campaigns import create_draft, make_config, make_draft, set_study
from tests.support.people import CODES_OF_ALL, WHOLE

STUDY = {
    "recruiter": "prolific",
    "consent": "# Consent\n\nDo you agree?",
    "codes": CODES_OF_ALL | {"completed": "C0MPLETE"},
    "votes_per_person": 3,
    "protocol": WHOLE | {"practice": PRACTICE[:1], "check_share": 0.1},
}


def everything() -> dict[str, list]:
    """Return every row of every table but the sessions."""
    models = [model for model in apps.get_models() if model is not Session]
    return {model._meta.label: list(model.objects.order_by("pk").values_list()) for model in models}


@pytest.fixture
def draft(researcher, idle_tasks):
    made = make_draft(researcher)
    set_study(made, STUDY, ())
    idle_tasks()
    return made


class Walker:
    def __init__(self, client, draft) -> None:
        self.client, self.url = client, reverse("console:participant-preview", args=[draft.pk])

    @property
    def page(self) -> str:
        answer = self.client.get(self.url)
        assert answer.status_code == 200
        return answer.content.decode()

    def send(self, **fields) -> str:
        return self.client.post(
            self.url, {name.replace("__", "-"): value for name, value in fields.items()}, follow=True
        ).content.decode()

    def pass_the_stages(self) -> str:
        assert "Do you agree?" in self.page
        page = self.send(consent="agree")
        assert "How old are you?" in page
        page = self.send(stage="questions", **{"answer-role": "student", "answer-age": "30", "answer-mood": "2"})
        assert "I have read this" in page
        page = self.send(stage="instructions")
        assert "Practice: pair 1 of 1" in page
        assert "Night is darker." in self.send(stage="practice", **{"answer-step": "0", "answer-choice": "second"})
        page = self.send(stage="practice", **{"answer-step": "0-answered"})
        assert "What do you read?" in page
        wrong = self.send(stage="comprehension", **{"answer-try": "0", "answer-check_0": "one"})
        assert "What do you read?" in wrong
        return self.send(stage="comprehension", **{"answer-try": "1", "answer-check_0": "both"})


def test_the_whole_way_writes_nothing(signed_in, draft):
    before = everything()
    walker = Walker(signed_in, draft)
    page = walker.pass_the_stages()
    questions = []
    for _ in range(10):
        if not (question := re.search(r'id="question"[^>]*>(.*?)</h1>', page)):
            break
        questions.append(question[1])
        assert "Nothing is stored" in page
        page = walker.send(choice="first")
    assert any(each.startswith("Attention check") for each in questions)
    assert len(questions) == 4
    assert "Anything else?" in page
    page = walker.send(stage="last-questions")
    for words in ("Your part is complete", "C0MPLETE", "It was about <strong>taste</strong>"):
        assert words in page
    assert everything() == before
    # The negative control: a table that changes is seen.
    State.objects.filter(campaign=draft).first().delete()
    assert everything() != before
    assert not Voter.objects.exists()
    assert not Vote.objects.exists()


@pytest.mark.parametrize("kind", ["images", "molecules", "texts"])
def test_objects_that_chains_make_are_made_for_the_preview(signed_in, researcher, kind):
    kernel = {"kind": "fragments"} if kind == "molecules" else {"kind": "independent"}
    config = make_config(version=1, space={"kind": kind}, kernel=kernel)
    walker = Walker(signed_in, create_draft(owner=researcher, config=config))
    before = everything()
    page = walker.send(consent="agree")
    for address in re.findall(r'<img src="([^"]+)"', page):
        assert signed_in.get(address).status_code == 200
    for _ in range(6):
        page = walker.send(choice="first")
    assert "Your part is complete" in page
    assert everything() == before


def test_it_is_for_drafts(signed_in, campaign):
    url = reverse("console:participant-preview", args=[campaign.pk])
    assert "This preview is for drafts" in signed_in.get(url, follow=True).content.decode()


def texts_in(page: str) -> list[str]:
    found = re.findall(r'<span class="text">(.*?)</span>\n', page, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", each) for each in found]


def created(client, **fields) -> str:
    answer = client.post(reverse("console:create"), form(**{"space.catalog.file": ""} | fields), follow=True)
    assert answer.redirect_chain
    return answer.content.decode()


def test_the_reply_to_a_setup_shows_its_question_its_instructions_and_the_first_pair(signed_in, idle_tasks):
    fields = OF_TEXTS | {"seed": "77", "kernel.usual.distance": "fixed", "kernel.usual.length": "1"}
    page = created(signed_in, instructions="Choose by feeling.", **fields, **{"judges.0.question": "Which is darker?"})
    for words in ("Which is darker?", "Choose by feeling.", "Skip this pair"):
        assert words in page
    campaign = Campaign.objects.get()
    plan = plan_of(campaign)
    pair = sampler.ask(plan, sampler.begin(plan, 0))
    assert sorted(texts_in(page)) == sorted(plan.space.content(state) for state in (pair.current, pair.proposal))
    # The negative control: another seed begins with another pair.
    assert sorted(texts_in(created(signed_in, **fields | {"seed": "78"}))) != sorted(texts_in(page))


def test_a_draft_that_was_changed_on_the_way_begins_anew(signed_in, draft):
    walker = Walker(signed_in, draft)
    assert "Do you agree?" in walker.page
    walker.send(consent="agree")
    walker.send(stage="questions", **{"answer-role": "student", "answer-age": "30", "answer-mood": "2"})
    assert "Practice: pair 1 of 1" in walker.send(stage="instructions")
    set_study(draft, STUDY | {"protocol": WHOLE}, ())
    assert "Do you agree?" in walker.page
    assert "What are you?" in walker.send(consent="agree")
