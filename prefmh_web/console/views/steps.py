"""The steps of a campaign: a list with limits, and a page for each step, whose address can be sent to a colleague."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.events import of_step
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.monitoring.steps import Wanted, rows_of, step_at, steps_in, votes_on
from prefmh_web.campaigns.started import objects, started_campaign
from prefmh_web.console.answers import ANSWERS
from prefmh_web.console.durations import in_words
from prefmh_web.console.forms.steps import StepsForm
from prefmh_web.console.tabs import frame
from prefmh_web.console.views.campaigns import campaign_for
from prefmh_web.objects import media

A_PAGE = 50
_OBJECTS = ("current", "proposal")
# From which object a chain goes on.
_KEPT: dict[str | None, str] = {Comparison.Verdict.ACCEPT: "proposal", Comparison.Verdict.REJECT: "current"}


@login_required
@require_safe
def steps(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """List the steps that the address asks for, the newest first."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    form = StepsForm(request.GET, started=started_campaign(campaign))
    wanted = form.wanted
    found = steps_in(campaign, wanted) if wanted else Comparison.objects.none()
    page = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    context = frame(request, campaign) | table_of(campaign, page.object_list)
    context |= {"form": form, "page": page, "is_limited": wanted not in (None, Wanted())}
    return render(request, "console/steps.html", context, status=200 if wanted else 400)


@login_required
@require_safe
def step(request: SignedInRequest, campaign_id: int, chain: int, step: int) -> HttpResponse:
    """Show one step whole."""
    campaign = campaign_for(request, campaign_id)
    comparison = _found(campaign, chain, step)
    context = frame(request, campaign) | table_of(campaign, [comparison])
    context |= {
        "within": reverse("console:steps", args=[campaign.pk]),
        "step": context["steps"][0],
        "sides": _sides(campaign, comparison),
        "votes": votes_on(comparison),
        "took": comparison.decided_at and in_words((comparison.decided_at - comparison.opened_at).total_seconds()),
        "r0": _ratio(comparison.log_r0),
        # While votes are out, nobody may know how many of them the proposal needs.
        "uniform": None if comparison.takes_votes else comparison.uniform,
        "suspensions": of_step(comparison),
        "previous": _opened(comparison, step - 1),
        "next": _opened(comparison, step + 1),
    }
    return render(request, "console/step.html", context)


@login_required
@require_safe
def picture(request: SignedInRequest, campaign_id: int, chain: int, step: int, shown: str) -> HttpResponse:
    """Send the picture of one object of a step, with what differs from the other one marked."""
    if shown not in _OBJECTS:
        raise Http404("A step has a current object and a proposal.")
    campaign = campaign_for(request, campaign_id)
    comparison = _found(campaign, chain, step)
    pair = objects.stored(comparison.current), objects.stored(comparison.proposal)
    wanted, beside = pair if shown == "current" else pair[::-1]
    look = replace(media.look_of(request), marked=True)
    return media.response(request, campaign.object_kind, wanted, beside, look)


def table_of(campaign: Campaign, steps: Iterable[Comparison]) -> dict[str, Any]:
    """Return what `console/_steps.html` shows of some steps."""
    rule, judges = started_campaign(campaign).config.rule, list(campaign.judges.all())
    rows = rows_of(campaign, judges, steps)
    return {
        "steps": rows,
        "judges": judges,
        "deciding": rule.scorers,
        "answers": ANSWERS[rule.evidence],
        "kind": campaign.object_kind,
    }


def _found(campaign: Campaign, chain: int, step: int) -> Comparison:
    found = None if campaign.is_draft else step_at(campaign, chain, step)
    if found is None:
        raise Http404("There is no such step yet.")
    return found


def _sides(campaign: Campaign, comparison: Comparison) -> list[dict[str, Any]]:
    """Return what the page shows of either object: its name, the object whole beside the other one, its measures."""
    kind, pair = campaign.object_kind, (comparison.current, comparison.proposal)
    options = kind.options(*(state.content for state in pair))
    at = campaign.pk, comparison.chain.place, comparison.step
    kept = None if comparison.is_identity else _KEPT.get(comparison.verdict)
    return [
        {
            "name": name,
            "address": reverse("console:step-picture", args=[*at, name]),
            "option": option,
            "is_kept": name == kept,
            "properties": kind.line(objects.stored(state)),
        }
        for name, state, option in zip(_OBJECTS, pair, options, strict=True)
    ]


def _ratio(logarithm: float) -> str:
    """Return a ratio in four digits; one that no float holds, as a power."""
    try:
        return f"{math.exp(logarithm):.4g}"
    except OverflowError:
        return f"10^{logarithm / math.log(10):.1f}"


def _opened(comparison: Comparison, number: int) -> int | None:
    """Return the number of a step of the same chain, if it has been opened."""
    is_there = Comparison.objects.filter(chain=comparison.chain_id, step=number).exists()
    return number if is_there else None
