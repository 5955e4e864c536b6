"""Most of a pair's HTML comes from memory: it is what the templates give."""

import uuid
from types import SimpleNamespace

import pytest
from django.utils import translation

from prefmh_web.annotate.screens import frames, screen_for
from prefmh_web.annotate.screens.frames import Progress, html_of
from prefmh_web.campaigns.models import Annotator
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.participants.options import options_of

PAIRS = {
    "texts": [('He said "no" & left.\n\nShe <b>stayed</b>.', "It's {{ late }}."), ("One.", "Two, 3.")],
    "markdown": [("# One\n\n<b>no</b> & *yes*", "| a |\n|---|\n| {{ b }} |"), ("1. One", "Two")],
    "molecules": [("CCO", "c1ccccc1"), ("CC(=O)O", "CC")],
    "images": [("1,2,3", "4,5,6"), ("7", "8")],
    "audio": [("one &.wav", "<two>.mp3"), ("3.wav", "4.wav")],
}
HOW_FAR = (Progress(1, 0, None, None, None), Progress(2, 50, None, None, None), Progress(3, 9, 20, 1.26, 30))


def shown_of(kind: str, left: str, right: str, question: str, **more: object) -> dict:
    options = options_of(OBJECT_KINDS[kind], left, right, lambda side: f"/pictures/{left}/{side}/")
    lease = SimpleNamespace(key=uuid.uuid4())
    return {"lease": lease, "question": question, "kind": OBJECT_KINDS[kind], "options": options, "context": ()} | more


@pytest.mark.parametrize("kind", OBJECT_KINDS)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ["pair", "check"])
def test_a_filled_frame_is_what_the_templates_give(kind, language, name):
    with translation.override(language):
        for question in ("Which is <darker>?", "Which is better?"):
            for left, right in PAIRS[kind]:
                for progress, must in zip(HOW_FAR, (False, True, False), strict=True):
                    shown = shown_of(kind, left, right, question, must_be_answered=must)
                    whole = frames._rendered(name, "pair", shown, frames._progress_html.__wrapped__(progress, language))
                    assert html_of(name, "pair", shown, progress) == whole
                    assert str(shown["lease"].key) in whole


def test_what_a_person_writes_into_a_text_is_never_a_place_to_fill_in():
    shown = shown_of("texts", frames._mark("lease"), frames._mark("progress"), "Which?")
    html = html_of("pair", "pair", shown, HOW_FAR[0])
    assert html.count(str(shown["lease"].key)) == 2
    assert html.count("<footer") == 1


def test_a_screen_of_a_campaign_says_how_many_votes_the_person_has_cast(campaign):
    annotator = Annotator.objects.create(campaign=campaign, invitation=campaign.invitations.get(), votes_cast=1)
    assert "<strong>1</strong> vote<" in screen_for(annotator.pk).html()
    Annotator.objects.filter(pk=annotator.pk).update(votes_cast=2)
    assert "<strong>2</strong> votes<" in screen_for(annotator.pk).html()
