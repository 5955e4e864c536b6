"""The doctor tries every program in SCORERS."""

from prefmh_web.campaigns.models import CampaignScorer
from prefmh_web.operations import doctor
from prefmh_web.scorers.kinds import commands
from tests.support.campaigns import make_campaign
from tests.support.models import declare

__all__ = ["declare"]


def told() -> str:
    return "\n".join(str(finding) for finding in doctor.findings())


def test_one_that_gives_none_is_named_with_its_reasons(db, declare, settings):
    declare("sys.exit('no weights')", name="broken")
    settings.SCORERS = {**settings.SCORERS, "missing": ("/nowhere/scorer",), "qed": ("true",)}
    found = told()
    assert "The scorer “broken” gave no number for an object." in found
    assert "no weights" in found
    assert "The scorer “missing” gave no number for an object." in found
    assert "SCORERS names a program “qed”, which prefmh measures itself." in found


def test_a_scorer_that_has_stopped_is_told(researcher, idle_tasks):
    make_campaign(researcher, scorer_names="words")
    CampaignScorer.objects.update(stopped_because="it is broken")
    assert "“Twelve texts”: the scorer words is no longer asked. it is broken." in told()
    assert commands.names() == []
