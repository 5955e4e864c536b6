"""Trying a judge of a draft before it starts: the page, its progress, and the researcher's own choices."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

import sampler
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import judge_trials
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, JudgeTrial
from prefmh_web.campaigns.started import objects
from prefmh_web.console.tried import tried_of
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user
from prefmh_web.objects import media


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


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def page(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show what the last trial of a judge has come to; begin another one."""
    campaign = _mine(request, campaign_id)
    judge = _judge(campaign, place)
    form = TryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            judge_trials.begin(campaign, place, request.user, **form.cleaned_data)
        except lifecycle.NotPossible as reason:
            messages.error(request, str(reason))
        return redirect("console:try", campaign.pk, place)
    trial = _last(campaign, place)
    shown = {"place": place, "judge": judge, "form": form}
    shown["is_current"] = trial is not None and trial.judge == judge.model_dump(mode="json")
    return render(request, "console/try.html", shown | _results(campaign, trial))


@login_required
@require_safe
def progress(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show how far the last trial is."""
    campaign = _mine(request, campaign_id)
    return _fragment(request, campaign, _last(campaign, place))


@login_required
@require_POST
@posts_by_user
def stop(request: SignedInRequest, campaign_id: int, trial_id: int) -> HttpResponse:
    """Ask no more."""
    campaign = _mine(request, campaign_id)
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    judge_trials.stop(trial)
    return redirect("console:try", campaign.pk, trial.place)


@login_required
@require_POST
@posts_by_user
def go_on(request: SignedInRequest, campaign_id: int, trial_id: int) -> HttpResponse:
    """Ask for what is missing."""
    campaign = _mine(request, campaign_id)
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    try:
        judge_trials.go_on(trial)
    except lifecycle.NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:try", campaign.pk, trial.place)


@login_required
@require_POST
@posts_by_user
def prefer(request: SignedInRequest, campaign_id: int, trial_id: int, index: int) -> HttpResponse:
    """Keep which object of a pair the researcher prefers."""
    campaign = _mine(request, campaign_id)
    trial = _with_pair(campaign, trial_id, index)
    if (preferred := request.POST.get("preferred", "")) not in ("0", "1"):
        raise Http404
    judge_trials.prefer(trial, index, int(preferred))
    if request.headers.get("HX-Request"):
        trial.refresh_from_db()
        return _fragment(request, campaign, trial)
    return redirect("console:try", campaign.pk, trial.place)


@login_required
@require_safe
def picture(request: HttpRequest, campaign_id: int, trial_id: int, index: int, which: int) -> HttpResponse:
    """Send the picture of an object of a pair."""
    campaign = _mine(request, campaign_id)
    if which not in (0, 1):
        raise Http404
    row = judge_trials.rows_of(campaign, _with_pair(campaign, trial_id, index).pairs[index])[which]
    return media.response(request, campaign.object_kind, objects.stored(row))


def _mine(request: HttpRequest, campaign_id: int) -> Campaign:
    return campaign_for(request, campaign_id, Right.OWN)


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
