"""How much is asked of people, and how much they can give: places, votes, minutes, waiting, and a budget in answers.

Places: how many people can take part, in all and for each answer to a question. Somebody holds one from the last stage
before practice on; without practice, from the last one before the votes. A part that ends without pay gives it back,
and so does an absence. It is taken under the lock of the study, so there is never one too many.

Minutes: how long pairs stood before somebody that they answered or skipped, repeats included. Time away costs nobody
anything: a pair whose time runs out is not counted. Waiting: how long nobody had a pair for them; a part that ends by
it is paid. Both depend on clocks and on who else votes, and on no pair's content.

Budget: a campaign starts only if all that it can ask for fits, and no more than that is ever given. An answer is a vote
of a person, one that came too late included, or an answer to a trial that is no vote. A pair that is skipped, or whose
time runs out, costs nothing. The votes that every step can need are set aside from the start, so no trial is ever given
in the place of one: only the rest is for trials and late votes. How much of that is left depends only on how many there
were. Votes that early stopping saves do not add to it, because that would depend on what was answered.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, DateTimeField, DurationField, Exists, F, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Least
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine.locks import lock_people
from prefmh_web.campaigns.frozen import limits_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Lease, NotPossible, Vote, Voter
from prefmh_web.config import CampaignConfig, Outcome, Pay, Protocol, Study, validation_errors
from prefmh_web.participants.models import AttentionCheck, Participation
from sampler.judges import trials_after


def locked_study(campaign_id: int) -> Study:
    """Return what a campaign asks of people, and let nobody else join, take a place or change it until the end of the
    transaction."""
    lock_people(campaign_id)
    return Campaign.objects.get(pk=campaign_id).config.study


def going_on() -> QuerySet[Campaign]:
    """Return the campaigns in which somebody has a part that has not ended."""
    participations = Participation.objects.filter(campaign=OuterRef("pk"), outcome="")
    return Campaign.objects.filter(Exists(participations))


def minutes_of(config: CampaignConfig, voters: QuerySet[Voter]) -> Mapping[int, float]:
    """Return for each voter of a campaign how many minutes they were active; 0 for all others.

    Of what is answered later than there was time for, as by somebody who was away, only that time counts.
    """
    done = (Lease.Ending.VOTED, Lease.Ending.SKIPPED)
    asked = Lease.objects.filter(voter__in=voters, ending__in=done).order_by()
    shown = Sum(Least("ended_at", "expires_at") - F("issued_at"), output_field=DurationField())
    time_to_answer = timedelta(seconds=config.answering.seconds)
    repeats = AttentionCheck.objects.filter(kind=AttentionCheck.Kind.REPEAT, answered_at__isnull=False).order_by()
    repeats = repeats.filter(participation__voter__in=voters)
    until = Least("answered_at", F("shown_at") + time_to_answer, output_field=DateTimeField())
    repeated = Sum(until - F("shown_at"), output_field=DurationField())
    minutes: defaultdict[int, float] = defaultdict(float)
    for spent_by in (
        asked.values_list("voter").annotate(spent=shown),
        repeats.values_list("participation__voter").annotate(spent=repeated),
    ):
        for pk, spent in spent_by:
            minutes[pk] += spent.total_seconds() / 60
    return minutes


def minutes_done(voter: Voter) -> float | None:
    """Return how many minutes somebody was active; None, without a look, where that is not limited."""
    if limits_of(voter.campaign).active_minutes is None:
        return None
    return minutes_of(started_campaign(voter.campaign).config, Voter.objects.filter(pk=voter.pk))[voter.pk]


def reached(voter: Voter, minutes: float | None) -> Outcome | None:
    """Return how the part of somebody ends who has given what was asked, or may give no more; None if they go on.

    Args:
        minutes: how long they were active, where that is limited.
    """
    asked = limits_of(voter.campaign)
    if asked.votes_per_person is not None and voter.votes_cast >= asked.votes_per_person:
        return Outcome.COMPLETED
    if voter.removed_at:
        return Outcome.ENDED
    if minutes is not None and minutes >= (asked.active_minutes or 0):
        # Who has given the time that was asked has done their part; who has only skipped has not.
        return Outcome.COMPLETED if voter.votes_cast else Outcome.TIME_OVER
    return Outcome.TIME_OVER if is_time_over(voter) else None


def is_time_over(voter: Voter) -> bool:
    """True if the time that somebody was given from their arrival on is over."""
    minutes = limits_of(voter.campaign).minutes_per_person
    return minutes is not None and timezone.now() >= voter.joined_at + timedelta(minutes=minutes)


def note_wait(voter: Voter, *, is_waiting: bool) -> None:
    """Note that somebody has just found no pair, or has one again; only where waits end parts."""
    participations = Participation.objects.filter(voter=voter.pk, outcome="", waits_since__isnull=is_waiting)
    since = timezone.now() if is_waiting else None
    # After the commit: whoever settles a part locks it before its voter, and a vote holds the voter.
    transaction.on_commit(lambda: participations.update(waits_since=since))


def has_waited_enough(voter: Voter) -> bool:
    """True if somebody has waited for as long as the protocol asks of them."""
    minutes = limits_of(voter.campaign).wait_minutes
    if minutes is None:
        return False
    limit = timezone.now() - timedelta(minutes=minutes)
    return Participation.objects.filter(voter=voter, waits_since__lte=limit).exists()


def settled(voter: Voter) -> Outcome | None:
    """Return how somebody's part has ended, after which no further pair is leased; None while it goes on."""
    outcome = Participation.objects.filter(voter=voter).values_list("outcome", flat=True).first()
    return Outcome(outcome) if outcome else None


def may_be_over(campaign: Campaign) -> Q:
    """Return which parts of a campaign have perhaps ended although nobody has looked: a limit is reached, the campaign
    is finished, or access was withdrawn. Who gave nothing and has gone is not among them: they are asked to come back,
    and are not paid unseen.
    """
    now, asked = timezone.now(), limits_of(campaign)
    is_late = Q(voter__removed_at__isnull=False)
    is_over = Q(campaign__status=Campaign.Status.FINISHED)
    has_waited = Q(pk__in=())
    if asked.minutes_per_person is not None:
        is_late |= Q(voter__joined_at__lte=now - timedelta(minutes=asked.minutes_per_person))
    if asked.active_minutes is not None:
        participations = Participation.objects.filter(campaign=campaign, outcome="")
        minutes = minutes_of(campaign.config, Voter.objects.filter(pk__in=participations.values("voter")))
        is_late |= Q(voter__in=[pk for pk, spent in minutes.items() if spent >= asked.active_minutes])
    if asked.votes_per_person is not None:
        is_over |= Q(voter__votes_cast__gte=asked.votes_per_person)
    if asked.wait_minutes is not None:
        has_waited = Q(waits_since__lte=now - timedelta(minutes=asked.wait_minutes))
    is_here = Q(voter__online_until__gte=now)
    return is_late | has_waited & is_here | (is_over | has_waited) & Q(voter__votes_cast__gte=1)


def take(participation: Participation, study: Study) -> bool:
    """Give somebody a place, and return True, if one is free. The caller holds the lock of the study."""
    if not _is_free(participation, study):
        return False
    Participation.objects.filter(pk=participation.pk).update(placed_at=timezone.now())
    return True


def held(campaign: Campaign, study: Study) -> QuerySet[Participation]:
    """Return the parts that hold a place."""
    unpaid, if_voted = ([each for each in Outcome if study.paid(each, votes) is Pay.NOTHING] for votes in (1, 0))
    has_not_voted = Q(voter__votes_cast=0)
    placed = Participation.objects.filter(campaign=campaign, placed_at__isnull=False)
    as_set_up = placed.exclude(outcome__in=unpaid, pay="").exclude(has_not_voted, outcome__in=if_voted, pay="")
    return as_set_up.exclude(pay=Pay.NOTHING)


def are_all_taken(campaign: Campaign, study: Study) -> bool:
    """True if nobody new can have a place, whatever they answer."""
    return study.quota is not None and held(campaign, study).count() >= study.quota


def are_limited(study: Study) -> bool:
    """True if not everybody can have a place."""
    return study.quota is not None or any(question.quota for question in study.protocol.questions)


def _is_free(participation: Participation, study: Study) -> bool:
    others = held(participation.campaign, study).exclude(pk=participation.pk)
    if study.quota is not None and others.count() >= study.quota:
        return False
    for question in study.protocol.questions:
        answer = participation.answers.get(question.name, {}).get("answer", "")
        most = question.quota.get(answer)
        # Not by a look-up in words: a question's name may have two underscores.
        given = KeyTransform("answer", KeyTransform(question.name, "answers"))
        same = others.alias(given=given).filter(given=answer)
        if most is not None and same.count() >= most:
            return False
    return True


def take_from_absent() -> int:
    """Take the places of people who have been away for too long, where places are limited; return how many."""
    under_way = [each for each in going_on() if each.is_under_way and are_limited(each.config.study)]
    return sum(map(_take_from_absent, under_way))


def _take_from_absent(campaign: Campaign) -> int:
    study = campaign.config.study
    minutes = study.absent_minutes or study.max_minutes
    if minutes is None:
        return 0
    limit = timezone.now() - timedelta(minutes=minutes)
    here = Participation.objects.filter(campaign=campaign, placed_at__isnull=False, outcome="")
    # What an open page renews lies in the future, by much less than a minute counts here.
    away = here.filter(seen_at__lt=limit).filter(Q(voter__online_until__isnull=True) | Q(voter__online_until__lt=limit))
    asked = away.annotate(asked_at=Max("voter__leases__issued_at"))
    gone = asked.filter(Q(asked_at__isnull=True) | Q(asked_at__lt=limit)).values_list("pk", flat=True)
    with transaction.atomic():
        # Looked at again under their locks: who comes back in this moment keeps the place.
        free = Participation.objects.select_for_update(skip_locked=True, no_key=True)
        still_gone = list(free.filter(pk__in=list(gone), seen_at__lt=limit, outcome="").values_list("pk", flat=True))
        return Participation.objects.filter(pk__in=still_gone).update(placed_at=None)


@dataclass(frozen=True)
class Answers:
    """Answers of people: votes, trials beside them, and how many of the votes came too late."""

    votes: int
    trials: int
    late: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.votes + self.trials


def needs(config: sampler.ChainConfig, protocol: Protocol) -> Answers:
    """Return what a campaign can ask of people, by its setup alone: the votes of all steps if nothing is decided early,
    and the trials to which the declared shares come.
    """
    votes = config.chains_at_most * config.steps * config.votes_a_step
    return Answers(votes, trials_after(votes, protocol.shares))


def require_startable(campaign: Campaign) -> None:
    """Require that the pairs of a draft's protocol fit its setup, which may have changed since; that a panel, whose
    people are known, is not sent by a platform or stopped by a limit; that there are places for as many different
    people as each pair needs; and that its budget, if it has one, covers whatever its chains and shares can ask for.

    Raises:
        NotPossible: something is otherwise; the message says what would do.
    """
    config, study = campaign.config, campaign.config.study
    for path, reason in validation_errors(config):
        # What else is wrong, whoever saved the configuration was told.
        if path.startswith("study.protocol."):
            raise NotPossible(f"A practice or gold pair does not fit the setup: {path} {reason}.")
    if config.panelists:
        _require_unlimited(study)
    wanted, people = needs(config, study.protocol), max(_asked(campaign), default=0)
    if study.quota is not None and study.quota < people:
        raise NotPossible(
            f"Each pair needs votes of {people} different people, and there are {study.quota} places. On the "
            f"page “Participants”, set “Number of people (quota)” to {people} or more, or ask for fewer votes in the "
            "setup."
        )
    if study.budget is not None and study.budget < wanted.total:
        trials = f", and the shares of the protocol come to {wanted.trials} trials beside them" if wanted.trials else ""
        raise NotPossible(
            f"The budget of {study.budget} answers is too small: {config.chains_at_most} chains of {config.steps} "
            f"steps with {config.votes_a_step} votes each can take {wanted.votes} votes{trials}. On the page "
            f"“Participants”, set “Budget, in answers” to {wanted.total} or more or leave it empty; or choose fewer "
            "chains, steps or votes in the setup, or smaller shares on the page “Protocol”."
        )


def _require_unlimited(study: Study) -> None:
    if study.platform.knows_people:
        raise NotPossible(
            f"A panel has a link for each person, so {study.platform.title} cannot send its people. On the page "
            "Participants choose that anybody with the link may vote, or choose a crowd in the setup."
        )
    if study.votes_per_person is not None or study.minutes_per_person is not None:
        raise NotPossible(
            "Every step of a panel may need an answer of everybody. Remove the limit of votes or minutes on the page "
            "Participants."
        )


def require_covers(campaign: Campaign) -> None:
    """Require that the budget of a started campaign, if it has one, covers chains as long as its config now says.

    Raises:
        NotPossible: it does not; the message says how many answers would.
    """
    config, study = campaign.config, campaign.config.study
    wanted = needs(config, study.protocol).total
    if study.budget is not None and study.budget < wanted:
        fix = f"First set “Budget, in answers” to {wanted} or more on the page “Participants”."
        if campaign.status == Campaign.Status.FINISHED:
            fix = "It cannot be raised any more, because the campaign is finished."
        raise NotPossible(
            f"The budget of {study.budget} answers is too small: {config.chains_at_most} chains of {config.steps} "
            f"steps can take {wanted} answers. {fix}"
        )


def takes_one_more(campaign: Campaign) -> bool:
    """Return whether a trial, or a vote that came too late, may be added. Within a transaction: until its end, nobody
    else adds one. Only where there is a budget.
    """
    # Read anew: an open page may have read it before the budget was raised, or the chains became longer. Seen without a
    # lock first: where nothing is left, none is held while a pair is looked for.
    found = Campaign.objects.filter(pk=campaign.pk)
    if _left(found.get()) <= 0:
        return False
    # The last of all locks, see `engine/leases.py`.
    return _left(found.select_for_update(no_key=True).get()) > 0


def _left(campaign: Campaign) -> int:
    study = campaign.config.study
    set_aside = needs(started_campaign(campaign).config, study.protocol).votes
    return (study.budget or 0) - set_aside - _late(campaign) - _trials_out(campaign)


def spent(campaign: Campaign) -> Answers:
    """Return the answers that people have given until now."""
    votes = Voter.objects.filter(campaign=campaign).aggregate(given=Sum("votes_cast"))["given"] or 0
    answered = AttentionCheck.objects.filter(participation__campaign=campaign).exclude(chosen_side="").count()
    return Answers(votes, answered, _late(campaign))


def spending_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return what a campaign can cost; None where there is nothing to say.

    It `needs` so many answers at most: the least budget with which it can start, so the one of its `study` may be too
    small (`is_too_small`). So many are `spent`, None of a draft; `supply` is what is still needed and can be given. A
    place is paid `full_pay`, and all places `cost` so much, which is `per_vote` if all give as many votes as the steps
    can take; the last two are empty where that is not known.
    """
    study, cost = campaign.config.study, campaign.config.study.cost_of_quota
    if not (campaign.is_draft or study.budget is not None or cost is not None):
        return None
    wanted = needs(campaign.config, study.protocol)
    bought = (
        wanted.votes
        if study.votes_per_person is None
        else min(wanted.votes, study.votes_per_person * (study.quota or 0))
    )
    return {
        "study": study,
        "needs": wanted,
        "spent": None if campaign.is_draft else spent(campaign),
        "supply": supply_of(campaign),
        "is_too_small": study.budget is not None and study.budget < wanted.total,
        "full_pay": study.priced(study.full_pay),
        "cost": study.priced(cost),
        "per_vote": study.priced(cost / bought) if cost and bought else "",
    }


def _late(campaign: Campaign) -> int:
    return Vote.objects.filter(voter__campaign=campaign, number=None).count()


def _trials_out(campaign: Campaign) -> int:
    """Return how many trials were answered or can still be: all but those that were skipped."""
    given = AttentionCheck.objects.filter(participation__campaign=campaign)
    return given.exclude(chosen_side="", answered_at__isnull=False).count()


def _asked(campaign: Campaign) -> list[int]:
    """Return N of each judge whose votes are people's."""
    config = campaign.config
    if config.rule.evidence != "votes":
        return []
    return [judge.votes for judge in config.judges if not isinstance(judge.source, sampler.ModelSource)]


def supply_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return the votes that a campaign still needs of people, and those that they can still give; None where people
    have nothing left to judge.

    So many `steps` are not decided, which can need `most` votes; `wanted` are those that they need if voters are
    indifferent, or `most` where working that out takes too long (`is_expected`). They `can_give` so many: of who has a
    place, the votes that they have not given, and all votes of each free place; None for no limit. It `is_short` if
    these are fewer than wanted, `lacks_people` if a pair needs more people than there can be, and `is_full` if no place
    is free.
    """
    study, asked, left = campaign.config.study, _asked(campaign), _steps_left(campaign)
    if not asked or not left:
        return None
    estimate, (people, can_give) = sampler.estimate(1, left, asked), _can_give(campaign, study)
    wanted = estimate.votes_at_most if estimate.votes is None else math.ceil(estimate.votes)
    return {
        "steps": left,
        "most": estimate.votes_at_most,
        "is_expected": estimate.votes is not None,
        "wanted": wanted,
        "can_give": can_give,
        "is_short": can_give is not None and can_give < wanted,
        "lacks_people": people is not None and people < max(asked),
        "is_full": are_all_taken(campaign, study),
    }


def _steps_left(campaign: Campaign) -> int:
    config = campaign.config
    if campaign.is_draft:
        return config.chains_at_most * config.steps
    if campaign.status == Campaign.Status.FINISHED:
        return 0
    undecided = Sum(F("length") - F("step"), filter=Q(ended_at=None), default=0)
    opened = campaign.chains.aggregate(count=Count("pk"), left=undecided)
    left: int = opened["left"] + (config.chains_at_most - opened["count"]) * config.steps
    return left


def _can_give(campaign: Campaign, study: Study) -> tuple[int | None, int | None]:
    """Return how many people can still vote, and how many votes they can give; None for no limit."""
    if study.quota is None:
        return None, None
    holders = held(campaign, study)
    still = holders.filter(outcome="").aggregate(people=Count("pk"), votes=Sum("voter__votes_cast", default=0))
    free = max(0, study.quota - holders.count())
    people: int = free + still["people"]
    if study.votes_per_person is None:
        return people, None
    owed: int = still["people"] * study.votes_per_person - still["votes"]
    return people, free * study.votes_per_person + max(0, owed)


def estimate_of(campaign: Campaign) -> sampler.Estimate | None:
    """Return what a draft will take of people; None where nobody votes."""
    config, asked = campaign.config, _asked(campaign)
    if not asked:
        return None
    pay = config.study.full_pay
    return sampler.estimate(
        config.chains_at_most,
        config.steps,
        asked,
        burn_in=config.burn_in,
        votes_per_person=config.study.votes_per_person,
        full_pay=None if pay is None else float(pay),
    )
