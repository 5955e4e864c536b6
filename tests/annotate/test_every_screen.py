"""What every screen of the voting page offers, checked over the registry."""

import pytest

from prefmh_web.annotate.screens import SCREENS, ResponseError, response_in, screen_for
from prefmh_web.annotate.visit import visit_of
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Annotator


@pytest.fixture
def annotator(campaign):
    return Annotator.objects.create(campaign=campaign, invitation=campaign.invitations.get())


def test_a_choice_of_no_screen_is_refused_with_all_that_there_are():
    with pytest.raises(ResponseError, match="choice must be left, right, skip, not-shown or continue"):
        response_in({"choice": "up"})


def test_whatever_happens_some_screen_is_due(annotator, campaign):
    shown = [screen_for(annotator.pk)]
    for change in (lifecycle.pause, lifecycle.resume):
        change(campaign)
        shown.append(screen_for(annotator.pk))
    assert [screen.standing for screen in shown] == ["pair", "pair", "pair"]
    assert all('id="panel"' in screen.html() for screen in shown)
    assert SCREENS[-1].is_due(visit_of(annotator.pk))


def test_a_person_who_rests_continues(annotator):
    Annotator.objects.filter(pk=annotator.pk).update(resting=True)
    resting = screen_for(annotator.pk)
    assert resting.standing == "resting"
    assert "Are you still there?" in resting.html()
    response_in({"choice": "continue"}).respond(annotator)
    assert screen_for(annotator.pk).standing == "pair"
