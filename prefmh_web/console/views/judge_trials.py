"""Trying a judge of a draft before it starts: what a trial has shown, its pages, and the researcher's own choices."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

import sampler
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import judge_trials
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.lifecycle.judge_trials import rows_of
from prefmh_web.campaigns.model_judges.trials import Reply, read
from prefmh_web.campaigns.models import Campaign, JudgeTrial, State, TrialPair
from prefmh_web.campaigns.monitoring.judging import Share, price_of
from prefmh_web.console.views.common import campaign_action, campaign_for, form_page, get_page
from prefmh_web.objects import media


@dataclass(frozen=True)
class TriedPair:
    """One pair with the model's replies, and which object the researcher prefers."""

    preferred: int | None
    states: list[State]
    replies: list[Reply]

    @property
    def shows_one(self) -> bool:
        """True where the model rates one object at a time."""
        return any(reply.rating is not None for reply in self.replies)

    @property
    def orders(self) -> list[tuple[int, str, list[Reply]]]:
        """Of each order, or of each rated object: its number from 1, what it comes to, and its replies."""
        return [(number, _words(replies), replies) for number, replies in enumerate(self._by_first, start=1) if replies]

    @property
    def choice(self) -> int | None:
        """Which object the model is for, 0 or 1, both orders weighing the same; None where it is for neither."""
        ratings = [[reply.rating for reply in replies if reply.rating is not None] for replies in self._by_first]
        shares = [[s for reply in replies if (s := reply.for_first_object) is not None] for replies in self._by_first]
        if all(ratings):
            gap = mean(ratings[0]) - mean(ratings[1])
        elif all(shares):
            gap = mean(map(mean, shares)) - 0.5
        else:
            return None
        return None if gap == 0 else int(gap < 0)

    @property
    def _by_first(self) -> list[list[Reply]]:
        return [[reply for reply in self.replies if reply.first == first] for first in (0, 1)]

    @property
    def chosen_number(self) -> int | None:
        """The number of the chosen object, as the page shows it."""
        return None if self.choice is None else self.choice + 1


@dataclass(frozen=True)
class Tried:
    """A trial with all its pairs."""

    trial: JudgeTrial
    pairs: list[TriedPair]

    @property
    def replies(self) -> list[Reply]:
        return [reply for pair in self.pairs for reply in pair.replies]

    @property
    def done(self) -> int:
        """Pairs with replies."""
        return sum(bool(pair.replies) for pair in self.pairs)

    @property
    def unreadable(self) -> int:
        return sum(bool(reply.problem) for reply in self.replies)

    @property
    def mean_seconds(self) -> float | None:
        return mean(reply.seconds for reply in self.replies) if self.replies else None

    @property
    def mean_p_first(self) -> float | None:
        """Mean probability of a vote for what stands first, where it was told."""
        told = [reply.preference for reply in self.replies if reply.preference is not None]
        return mean(told) if told else None

    @property
    def first_shown(self) -> Share | None:
        """Votes for what stood first, where replies are votes."""
        votes = [reply.chosen == reply.first for reply in self.replies if reply.chosen is not None]
        return Share(sum(votes), len(votes)) if votes else None

    @property
    def agreement(self) -> Share | None:
        """Pairs on which the model is for what the researcher prefers, of those on which it is for one."""
        both = [
            pair.choice == pair.preferred
            for pair in self.pairs
            if pair.preferred is not None and pair.choice is not None
        ]
        return Share(sum(both), len(both)) if both else None

    @property
    def price(self) -> str:
        return price_of(self.trial.cost, self.trial.unpriced)


def tried_of(campaign: Campaign, trial: JudgeTrial) -> Tried:
    """Return what to show of a trial."""
    pairs: list[TrialPair] = trial.pairs
    return Tried(
        trial, [TriedPair(pair["preferred"], rows_of(campaign, pair), read(pair["replies"])) for pair in pairs]
    )


def _words(replies: list[Reply]) -> str:
    if told := [reply.preference for reply in replies if reply.preference is not None]:
        return f"p = {mean(told):.3f} for what stands first"
    if rated := [reply.rating for reply in replies if reply.rating is not None]:
        return f"rated {mean(rated):.3g}"
    votes = [reply.chosen for reply in replies if reply.chosen is not None]
    if not votes:
        return "no readable reply"
    return ", ".join(f"{votes.count(number)} for object {number + 1}" for number in (0, 1))


class TryForm(forms.Form):
    """How much is asked."""

    pairs = forms.IntegerField(
        min_value=1,
        max_value=judge_trials.MOST_PAIRS,
        initial=5,
        label=f"Sample pairs (at most {judge_trials.MOST_PAIRS})",
    )
    replies = forms.IntegerField(
        min_value=1,
        max_value=judge_trials.MOST_REPLIES,
        initial=1,
        label=f"Replies for each order (at most {judge_trials.MOST_REPLIES})",
        help_text="Not used with log-probabilities: one request for each order tells p.",
    )


@form_page
def page(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show what the last trial of a judge has come to; begin another one."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    judge = _judge(campaign, place)
    form = TryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            judge_trials.begin(campaign, place, request.user, **form.cleaned_data)
        except NotPossible as reason:
            messages.error(request, str(reason))
        return redirect("console:try", campaign.pk, place)
    trial = _last(campaign, place)
    shown = {"place": place, "judge": judge, "form": form}
    shown["is_current"] = trial is not None and trial.judge == judge.model_dump(mode="json")
    return render(request, "console/try.html", shown | _results(campaign, trial))


@get_page
def progress(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show how far the last trial is."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    return _fragment(request, campaign, _last(campaign, place))


@campaign_action(Right.OWN)
def stop(request: HttpRequest, campaign: Campaign, trial_id: int) -> HttpResponse:
    """Ask no more."""
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    judge_trials.stop(trial)
    return redirect("console:try", campaign.pk, trial.place)


@campaign_action(Right.OWN)
def go_on(request: HttpRequest, campaign: Campaign, trial_id: int) -> HttpResponse:
    """Ask for what is missing."""
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    try:
        judge_trials.go_on(trial)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:try", campaign.pk, trial.place)


@campaign_action(Right.OWN)
def prefer(request: HttpRequest, campaign: Campaign, trial_id: int, index: int) -> HttpResponse:
    """Keep which object of a pair the researcher prefers."""
    trial = _with_pair(campaign, trial_id, index)
    if (preferred := request.POST.get("preferred", "")) not in ("0", "1"):
        raise Http404
    judge_trials.prefer(trial, index, int(preferred))
    if request.headers.get("HX-Request"):
        trial.refresh_from_db()
        return _fragment(request, campaign, trial)
    return redirect("console:try", campaign.pk, trial.place)


@get_page
def picture(request: HttpRequest, campaign_id: int, trial_id: int, index: int, which: int) -> HttpResponse:
    """Send the picture of an object of a pair."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if which not in (0, 1):
        raise Http404
    row = judge_trials.rows_of(campaign, _with_pair(campaign, trial_id, index).pairs[index])[which]
    return media.response(request, campaign.object_kind, objects.stored(row))


def _judge(campaign: Campaign, place: int) -> sampler.JudgeConfig:
    judges = campaign.config.judges
    if place >= len(judges) or not isinstance(judges[place].source, sampler.ModelSource):
        raise Http404
    return judges[place]


def _with_pair(campaign: Campaign, trial_id: int, index: int) -> JudgeTrial:
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    if index >= len(trial.pairs):
        raise Http404
    return trial


def _last(campaign: Campaign, place: int) -> JudgeTrial | None:
    return campaign.judge_trials.filter(place=place).last()


def _results(campaign: Campaign, trial: JudgeTrial | None) -> dict[str, object]:
    return {"tried": trial and tried_of(campaign, trial), "kind": campaign.object_kind, "campaign": campaign}


def _fragment(request: HttpRequest, campaign: Campaign, trial: JudgeTrial | None) -> HttpResponse:
    return render(request, "console/_tried.html", _results(campaign, trial))
