"""Which of the pairs that people were shown once more a model is asked about, where its question says so.

Only pairs with an answer of people to the same question, that are decided and open in no chain (rule E3 of
`docs/exactness.md`), and on which the model has no vote.
"""

from __future__ import annotations

from prefmh_web.campaigns.model_judges import repeated
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import repeats as recorded
from prefmh_web.participants.model_agreement import unasked
from prefmh_web.participants.models import Recruitment


def put_all() -> None:
    """Put the questions that are wanted in all running campaigns."""
    recruited = Campaign.objects.filter(pk__in=Recruitment.objects.values("campaign"), status=Campaign.Status.RUNNING)
    for campaign in recruited.filter(judges__endpoint__isnull=False).distinct():
        if not campaign.unreadable and recorded.are_in(campaign):
            _put(campaign)


def _put(campaign: Campaign) -> None:
    recipe = campaign.parsed_recipe
    for judge in campaign.judges.filter(endpoint__isnull=False):
        most = repeated.most_pairs(recipe, judge.place)
        if most > judge.repeat_questions.count():
            repeated.put(judge, most, unasked(campaign, judge))
