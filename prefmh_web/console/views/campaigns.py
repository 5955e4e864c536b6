"""A campaign's own page, the list of them, each change that a button of theirs makes, and the documentation."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize

import sampler
from prefmh_web import drafts
from prefmh_web.accounts.models import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.lifecycle import access, changes, status
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign, NotPossible, State
from prefmh_web.campaigns.monitoring.steps import problems_in
from prefmh_web.console.board import Board, cards_of
from prefmh_web.console.views.common import campaign_action, campaign_page, frame, get_page, invited
from prefmh_web.drafts import MAX_PEOPLE, MAX_VOTES_PER_PERSON
from prefmh_web.objects import media
from prefmh_web.objects.texts import rendered, with_ids
from prefmh_web.participants.limits import estimate_of, spending_of

_A_PAGE = 50


class ExtensionForm(forms.Form):
    """How many steps each chain walks more."""

    steps = forms.IntegerField(
        min_value=1,
        max_value=sampler.LONGEST_CHAIN,
        label="Further steps of each chain",
        help_text="The chains go on from where they stand, as if the setup had asked for so many steps from the start.",
    )


class PilotForm(forms.Form):
    """How many people come to it, and how much each of them gives."""

    people = forms.IntegerField(min_value=1, max_value=MAX_PEOPLE, initial=5, label="People of the pilot")
    votes_per_person = forms.IntegerField(min_value=1, max_value=MAX_VOTES_PER_PERSON, initial=30, label="Votes each")


@get_page
def campaigns(request: HttpRequest) -> HttpResponse:
    """List the campaigns that the signed-in person may see: those that are archived, or the others."""
    is_archived = "archived" in request.GET
    found = access.campaigns_for(request.user).filter(archived_at__isnull=not is_archived)
    page = Paginator(found, _A_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "cards": cards_of(list(page.object_list)), "is_archived": is_archived}
    context["may_create"] = is_researcher(request.user)
    return render(request, "console/campaigns.html", context)


@campaign_page()
def campaign(request: SignedInRequest, found: access.SeenCampaign) -> HttpResponse:
    """Show a campaign live: a draft, or the first tab of one that has started."""
    context = frame(request, found)
    context |= {"board": Board(found), "problems": problems_in(found).count(), "seed_reuse": drafts.warning_of(found)}
    if context["may_run"] and found.is_under_way:
        context |= invited(request, found)
    asked = limits_of(found)
    if context["may_own"] and (asked.recruiter.knows_people or asked.has_budget):
        context["spending"] = spending_of(found)
    if context["may_own"] and found.is_draft:
        context |= _of_draft(found)
    return render(request, "console/draft.html" if found.is_draft else "console/overview.html", context)


def _of_draft(campaign: Campaign) -> dict[str, object]:
    """Return what people will be asked for, and the form of a pilot."""
    study = campaign.config.study
    estimate = estimate_of(campaign)
    money = None if estimate is None or estimate.money is None else Decimal(estimate.money)
    return {
        "needs_others": drafts.needs_others(campaign.config),
        "estimate": estimate,
        "seconds_a_vote": sampler.SECONDS_A_VOTE,
        "votes_per_person": study.votes_per_person,
        "money": study.priced(money),
        "pilot_form": PilotForm(auto_id="pilot_%s") if drafts.can_have_one(campaign) else None,
    }


@campaign_action(Right.RUN, "campaign")
def transition(request: HttpRequest, campaign: Campaign, change: Callable[[Campaign], None]) -> str:
    """Start, pause or resume a campaign, or end its warm-up."""
    change(campaign)
    return ""


@campaign_action(Right.OWN, "campaign")
def discard(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """Delete a draft."""
    lifecycle.discard(campaign)
    messages.info(request, f"“{campaign.name}” has been deleted.")
    return redirect("console:campaigns")


@get_page
def picture(request: HttpRequest, state_id: int) -> HttpResponse:
    """Send an object's picture to those who may see its campaign."""
    visible = State.objects.filter(campaign__in=access.campaigns_for(request.user).values("pk"))
    state = get_object_or_404(visible.select_related("campaign"), pk=state_id)
    return media.response(request, state.campaign.object_kind, objects.stored(state))


@campaign_action(Right.OWN)
def extend(request: SignedInRequest, campaign: Campaign) -> str:
    """Let each chain of a started campaign walk further steps."""
    form = ExtensionForm(request.POST)
    if not form.is_valid():
        raise NotPossible(f"{form['steps'].label}: {' '.join(map(str, form.errors['steps']))} Nothing was changed.")
    changes.extend(campaign, form.cleaned_data["steps"], request.user)
    how_to_go_on = " Press Resume to go on." if campaign.status == campaign.Status.PAUSED else ""
    return f"Each chain walks {campaign.config.steps} steps now.{how_to_go_on}"


@campaign_action(Right.OWN)
def archive(request: SignedInRequest, campaign: Campaign, is_archived: bool) -> HttpResponse:
    """Take a campaign off the list, or put it back."""
    status.archive(campaign, is_archived, request.user)
    messages.info(request, "The campaign is archived." if is_archived else "The campaign is on the list again.")
    return redirect(campaign)


@campaign_action(Right.OWN)
def delete(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Delete a campaign that has started, with all its data."""
    status.request_deletion(campaign, request.POST.get("name", ""))
    messages.info(request, f"“{campaign.name}” is being deleted, with its votes and its people.")
    return redirect("console:campaigns")


@campaign_action(Right.RUN, "campaign")
def ask_judges_again(request: HttpRequest, campaign: Campaign) -> str:
    """Take up the turns, and the model judges, that waited for somebody to see to what was wrong."""
    if not campaign.is_under_way:
        raise NotPossible(f"Nothing is asked again: the campaign is {campaign.get_status_display().lower()}.")
    taken = turns.try_again(campaign)
    return f"{taken} question{pluralize(taken)} asked again."


@campaign_action(Right.RUN, "campaign")
def accept(request: SignedInRequest, campaign: Campaign) -> str:
    """Let the model that a judge's server has turned to count as that judge from now on."""
    status.accept_models(campaign, request.user)
    return "The new model is used from now on. The export shows which votes it cast."


@campaign_action(Right.RUN, "campaign")
def ask_scorers_again(request: HttpRequest, campaign: Campaign) -> str:
    """Ask the scorers again that have stopped, and about the objects without a score."""
    status.ask_scorers_again(campaign)
    return "The scorers are asked again."


@get_page
def documentation(request: HttpRequest, name: str) -> HttpResponse:
    """Show one file of the documentation. Its address ends like the file's name, so links between the files work."""
    names = sorted(each.stem for each in settings.DOCS_DIR.glob("*.md"))
    if name not in names:
        raise Http404("There is no such page.")
    text = (settings.DOCS_DIR / f"{name}.md").read_text(encoding="utf-8")
    return render(request, "console/docs.html", {"name": name, "names": names, "text": with_ids(rendered(text))})
