"""The chains of a campaign and their steps: lists with limits, a page for each step, and the suspended ones.

The address of a step can be sent to a colleague.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import suspension
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.events import of_step
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.monitoring.progress import chains_of, heads_of
from prefmh_web.campaigns.monitoring.steps import Wanted, rows_of, step_at, steps_in, suspended_in, votes_on
from prefmh_web.console.forms.pages import EndForm, StepsForm
from prefmh_web.console.views.common import campaign_action, campaign_for, frame, get_page
from prefmh_web.console.words import ANSWERS, duration
from prefmh_web.objects import media

_STEPS_A_PAGE, _CHAINS_A_PAGE = 50, 24
_OBJECTS = ("current", "proposal")
# From which object a chain goes on.
_KEPT: dict[str | None, str] = {Comparison.Verdict.ACCEPT: "proposal", Comparison.Verdict.REJECT: "current"}


@get_page
def steps(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """List the steps that the address asks for, the newest first."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    form = StepsForm(request.GET, started=started_campaign(campaign))
    wanted = form.wanted
    found = steps_in(campaign, wanted) if wanted else Comparison.objects.none()
    page = Paginator(found, _STEPS_A_PAGE).get_page(request.GET.get("page"))
    context = frame(request, campaign) | table_of(campaign, page.object_list)
    context |= {"form": form, "page": page, "is_limited": wanted not in (None, Wanted())}
    return render(request, "console/steps.html", context, status=200 if wanted else 400)


@get_page
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
        "took": comparison.decided_at and duration((comparison.decided_at - comparison.opened_at).total_seconds()),
        "r0": _ratio(comparison.log_r0),
        # While votes are out, nobody may know how many of them the proposal needs.
        "uniform": None if comparison.takes_votes else comparison.uniform,
        "suspensions": of_step(comparison),
        "previous": _opened(comparison, step - 1),
        "next": _opened(comparison, step + 1),
    }
    return render(request, "console/step.html", context)


@get_page
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


@get_page
def chains(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show where the chains are."""
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        return redirect(campaign)
    page = Paginator(chains_of(campaign), _CHAINS_A_PAGE).get_page(request.GET.get("page"))
    context = frame(request, campaign) | {
        "within": campaign.get_absolute_url(),
        "page": page,
        "heads": heads_of(campaign, list(page)),
        "kind": campaign.object_kind,
        "answers": ANSWERS[started_campaign(campaign).config.rule.evidence],
    }
    return render(request, "console/chains.html", context)


@get_page
def suspended(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """List the suspended steps, with what can be done about each."""
    return _suspended_shown(request, campaign_for(request, campaign_id))


def _told_at_suspended(request: HttpRequest, campaign: Campaign, reason: NotPossible) -> HttpResponse:
    messages.error(request, str(reason))
    return redirect("console:suspended", campaign.pk)


@campaign_action(Right.RUN, _told_at_suspended)
def ask_again(request: HttpRequest, campaign: Campaign, comparison_id: int) -> HttpResponse:
    """Let people be asked about a suspended step again."""
    comparison = _of(campaign, comparison_id)
    suspension.try_again(comparison.pk)
    messages.info(request, f"Step {comparison.step} of chain {comparison.chain.place} is asked again.")
    return redirect("console:suspended", campaign.pk)


@campaign_action(Right.RUN, _told_at_suspended)
def end_chain(request: SignedInRequest, campaign: access.SeenCampaign, comparison_id: int) -> HttpResponse:
    """End the chain of a suspended step."""
    comparison = _of(campaign, comparison_id)
    form = EndForm(request.POST, auto_id=f"end_{comparison.pk}_%s")
    if not form.is_valid():
        return _suspended_shown(request, campaign, wrong={comparison.pk: form})
    suspension.end_chain(comparison.pk, form.cleaned_data["words"])
    messages.info(request, f"Chain {comparison.chain.place} ends before step {comparison.step}.")
    return redirect("console:suspended", campaign.pk)


def _of(campaign: Campaign, comparison_id: int) -> Comparison:
    whole = Comparison.objects.select_related("chain")
    return get_object_or_404(whole, pk=comparison_id, chain__campaign=campaign)


def _suspended_shown(
    request: SignedInRequest, campaign: access.SeenCampaign, wrong: dict[int, EndForm] | None = None
) -> HttpResponse:
    """Show the suspended steps; `wrong` are forms that could not be read, by the keys of their steps."""
    found = suspended_in(campaign)
    keys = [each.comparison.pk for each in found]
    forms = {key: EndForm(auto_id=f"end_{key}_%s") for key in keys} | (wrong or {})
    context = {
        "campaign": campaign,
        "suspended": [(each, forms[each.comparison.pk]) for each in found],
        "may_run": access.right_in(campaign, request.user) >= Right.RUN,
        "is_finished": campaign.status == Campaign.Status.FINISHED,
    }
    return render(request, "console/suspended.html", context)
