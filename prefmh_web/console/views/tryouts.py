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
from prefmh_web.campaigns.lifecycle import tryouts
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Tryout, TryoutPair
from prefmh_web.campaigns.started import objects
from prefmh_web.console.tried import tried_of
from prefmh_web.console.views.campaigns import campaign_for, posts_by_user
from prefmh_web.objects import media


class TryForm(forms.Form):
    """How much is asked."""

    pairs = forms.IntegerField(
        min_value=1, max_value=tryouts.MOST_PAIRS, initial=5, label=f"Sample pairs (at most {tryouts.MOST_PAIRS})"
    )
    replies = forms.IntegerField(
        min_value=1,
        max_value=tryouts.MOST_REPLIES,
        initial=1,
        label=f"Replies for each order (at most {tryouts.MOST_REPLIES})",
        help_text="Not used with log-probabilities: one request for each order tells p.",
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def page(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show what the last try of a judge has come to; begin another one."""
    campaign = _mine(request, campaign_id)
    judge = _judge(campaign, place)
    form = TryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            tryouts.begin(campaign, place, request.user, **form.cleaned_data)
        except lifecycle.NotPossible as reason:
            messages.error(request, str(reason))
        return redirect("console:try", campaign.pk, place)
    tryout = _last(campaign, place)
    shown = {"place": place, "judge": judge, "form": form}
    shown["is_current"] = tryout is not None and tryout.judge == judge.model_dump(mode="json")
    return render(request, "console/try.html", shown | _results(campaign, tryout))


@login_required
@require_safe
def progress(request: SignedInRequest, campaign_id: int, place: int) -> HttpResponse:
    """Show how far the last try is."""
    campaign = _mine(request, campaign_id)
    return _fragment(request, campaign, _last(campaign, place))


@login_required
@require_POST
@posts_by_user
def stop(request: SignedInRequest, campaign_id: int, tryout_id: int) -> HttpResponse:
    """Ask no more."""
    campaign = _mine(request, campaign_id)
    tryout = get_object_or_404(Tryout, pk=tryout_id, campaign=campaign)
    tryouts.stop(tryout)
    return redirect("console:try", campaign.pk, tryout.place)


@login_required
@require_POST
@posts_by_user
def go_on(request: SignedInRequest, campaign_id: int, tryout_id: int) -> HttpResponse:
    """Ask for what is missing."""
    campaign = _mine(request, campaign_id)
    tryout = get_object_or_404(Tryout, pk=tryout_id, campaign=campaign)
    try:
        tryouts.go_on(tryout)
    except lifecycle.NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:try", campaign.pk, tryout.place)


@login_required
@require_POST
@posts_by_user
def prefer(request: SignedInRequest, campaign_id: int, pair_id: int) -> HttpResponse:
    """Keep which object of a pair the researcher prefers."""
    campaign = _mine(request, campaign_id)
    pair = _pair(campaign, pair_id)
    if (preferred := request.POST.get("preferred", "")) not in ("0", "1"):
        raise Http404
    tryouts.prefer(pair, int(preferred))
    if request.headers.get("HX-Request"):
        return _fragment(request, campaign, pair.tryout)
    return redirect("console:try", campaign.pk, pair.tryout.place)


@login_required
@require_safe
def picture(request: HttpRequest, campaign_id: int, pair_id: int, which: int) -> HttpResponse:
    """Send the picture of an object of a pair."""
    campaign = _mine(request, campaign_id)
    if which not in (0, 1):
        raise Http404
    row = tryouts.rows_of(campaign, _pair(campaign, pair_id))[which]
    return media.response(request, campaign.object_kind, objects.stored(row))


def _mine(request: HttpRequest, campaign_id: int) -> Campaign:
    return campaign_for(request, campaign_id, Right.OWN)


def _judge(campaign: Campaign, place: int) -> sampler.JudgeConfig:
    judges = campaign.config.judges
    if place >= len(judges) or not isinstance(judges[place].source, sampler.ModelSource):
        raise Http404
    return judges[place]


def _pair(campaign: Campaign, pair_id: int) -> TryoutPair:
    return get_object_or_404(TryoutPair.objects.select_related("tryout"), pk=pair_id, tryout__campaign=campaign)


def _last(campaign: Campaign, place: int) -> Tryout | None:
    return campaign.tryouts.filter(place=place).last()


def _results(campaign: Campaign, tryout: Tryout | None) -> dict[str, object]:
    return {"tried": tryout and tried_of(campaign, tryout), "kind": campaign.object_kind, "campaign": campaign}


def _fragment(request: HttpRequest, campaign: Campaign, tryout: Tryout | None) -> HttpResponse:
    return render(request, "console/_tried.html", _results(campaign, tryout))
