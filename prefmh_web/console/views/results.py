"""What a campaign has brought, and how: samples, how they are spread and converge, chains and their steps, reported
problems, and the record's files.

The address of a step can be sent to a colleague.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

import sampler
from prefmh_web.accounts.models import SignedInRequest
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import suspension
from prefmh_web.campaigns.events import of_step
from prefmh_web.campaigns.frozen import StartedCampaign, started_campaign
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Comparison, NotPossible
from prefmh_web.campaigns.monitoring import steps as steps_of
from prefmh_web.campaigns.monitoring.judging import costs_of
from prefmh_web.campaigns.monitoring.progress import chains_of, with_heads
from prefmh_web.campaigns.monitoring.results import figures_of, samples_in, shown_samples
from prefmh_web.campaigns.monitoring.steps import STATUSES
from prefmh_web.campaigns.record import export, rows
from prefmh_web.campaigns.record.export import results_now
from prefmh_web.campaigns.record.rows import Snapshot
from prefmh_web.console.results import PAPER, convergence_for, found_page, paragraph, software, spreads_of
from prefmh_web.console.views import common
from prefmh_web.console.words import duration
from prefmh_web.objects import media
from prefmh_web.transport import sockets
from prefmh_web.transport.bodies import stream
from sampler import tables

_SAMPLES_A_PAGE, _PROBLEMS_A_PAGE = 12, 50


_MAX_WORDS = 500


class EndForm(forms.Form):
    """The researcher's reason."""

    words = forms.CharField(
        max_length=_MAX_WORDS,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why this chain ends here",
        help_text="It becomes part of the export. Name nobody.",
    )


_LARGEST = 2**31 - 1


class StepsForm(forms.Form):
    """Limits of the list of steps; an empty field sets none."""

    chain = forms.IntegerField(min_value=0, max_value=_LARGEST, required=False)
    status = forms.ChoiceField(
        choices=[("", "all"), *((name, called) for name, (called, _) in STATUSES.items())],
        required=False,
        label="Verdict",
    )
    judge = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Votes of")
    person = forms.IntegerField(min_value=1, max_value=_LARGEST, required=False, label="Voted by person")
    seconds = forms.FloatField(
        min_value=0,
        max_value=10**8,
        required=False,
        label="At least, in seconds",
    )

    def __init__(self, *args: Any, started: StartedCampaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if started.config.rule.evidence != "votes":
            # Ratings and scores belong to objects; nobody votes on a step.
            del self.fields["judge"], self.fields["person"]
            return
        panelists = (
            f"{judge.question} (panelist {judge.panelist})" if judge.panelist else judge.question
            for judge in started.judges
        )
        judges = self.fields["judge"]
        assert isinstance(judges, forms.TypedChoiceField)
        judges.choices = [("", "all questions"), *enumerate(panelists)]


@common.campaign_page(is_started=True)
def results(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the results of a campaign, or those so far."""
    page = Paginator(samples_in(campaign), _SAMPLES_A_PAGE).get_page(request.GET.get("page"))
    figures = figures_of(campaign)
    is_finished = campaign.status == Campaign.Status.FINISHED
    shown: dict[str, Any] = {
        "figures": figures,
        "page": page,
        "samples": shown_samples(campaign, [step.pk for step in page.object_list]),
        "as_table": request.GET.get("view") == "table",
        "costs": costs_of(campaign),
        "methods": paragraph(campaign, figures) if is_finished else "",
        "citations": (PAPER, software()),
    }
    return common.page(request, campaign, "console/results.html", **shown)


@common.campaign_page(is_started=True)
def found(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show what was found: a part of the page that loads after itself."""
    results, reason = _results(campaign)
    found = results and found_page(campaign, results)
    return common.page(request, campaign, "console/_found.html", found=found, reason=reason)


@common.campaign_page(is_started=True)
def verdict(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show whether the chains look converged: a part of the overview that loads after itself."""
    results, reason = _results(campaign)
    verdict, template = results and results.verdict, "console/_convergence_verdict.html"
    return common.page(request, campaign, template, verdict=verdict, reason=reason, no_sign=sampler.NO_SIGN)


def _results(campaign: Campaign) -> tuple[sampler.CampaignResults | None, str]:
    """Return what a campaign has found so far, or why nothing is known yet."""
    try:
        return results_now(campaign), ""
    except NotPossible as reason:
        return None, str(reason)


@common.campaign_page(is_started=True)
def properties(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show how the properties of the samples are spread: a part of the page that it loads after itself."""
    return common.page(request, campaign, "console/_spreads.html", spreads=spreads_of(campaign))


@common.campaign_page(is_started=True)
def convergence(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show R-hat, effective sample sizes, traces and ranks of the properties that the address names."""
    found = convergence_for(campaign, request.GET)
    status = 200 if found["form"].is_valid() else 400
    return common.page(request, campaign, "console/convergence.html", status, convergence=found)


@common.campaign_page(is_started=True)
def record(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show what can be downloaded of a started campaign."""
    files = [*export.documents(campaign, campaign.tuning), *export.TABLES]
    # What the docs mark as code, pages do not.
    about = [(name, kind, meaning.replace("`", "")) for name in files for kind, meaning in [tables.ABOUT[name]]]
    return common.page(request, campaign, "console/record.html", files=about, prefix=common.prefix_of(campaign))


@common.campaign_page()
def download(
    request: SignedInRequest, campaign: access.SeenCampaign, filename: str
) -> HttpResponse | StreamingHttpResponse:
    """Send one file of the record, or all of them as export.zip; `progress` is the token of `DownloadConsumer`."""
    if campaign.is_draft and filename != tables.CONFIG:
        raise Http404("A draft has no record yet.")
    response: HttpResponse | StreamingHttpResponse
    if filename in (documents := export.documents(campaign, campaign.tuning)):
        response = HttpResponse(documents[filename], content_type="application/json")
    elif table := (export.TABLES | {tables.PROPERTIES.file: rows.properties}).get(filename):
        response = _csv_of(campaign, lambda now: export.as_csv(table(now)))
    elif filename == tables.RESULTS.file:
        response = _csv_of(campaign, export.results)
    elif filename == "export.zip":
        token = request.GET.get("progress")
        told = (sockets.tell_share(token),) if token else ()
        response = stream(lambda: export.archive(campaign, *told), "application/zip")
    else:
        raise Http404("There is no such file.")
    return common.attachment(request, response, f"{common.prefix_of(campaign)}-{filename}")


def _csv_of(campaign: Campaign, written: Callable[[Snapshot], Iterator[str]]) -> StreamingHttpResponse:
    return stream(lambda: export.whole(campaign.pk, written(Snapshot.now(campaign))), "text/csv; charset=utf-8")


@common.campaign_page()
def problems(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """List the problems that people have reported, the latest first."""
    page = Paginator(steps_of.problems_in(campaign), _PROBLEMS_A_PAGE).get_page(request.GET.get("page"))
    return common.page(request, campaign, "console/problems.html", page=page, problems=steps_of.with_pairs(list(page)))


_STEPS_A_PAGE, _CHAINS_A_PAGE = 50, 24
_OBJECTS = ("current", "proposal")
# From which object a chain goes on.
_KEPT: dict[str | None, str] = {Comparison.Verdict.ACCEPT: "proposal", Comparison.Verdict.REJECT: "current"}


@common.campaign_page(is_started=True)
def steps(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """List the steps that the address asks for, the newest first."""
    form = StepsForm(request.GET, auto_id="show_%s", started=started_campaign(campaign))
    is_valid = form.is_valid()
    found = steps_of.steps_in(campaign, form.cleaned_data) if is_valid else Comparison.objects.none()
    page = Paginator(found, _STEPS_A_PAGE).get_page(request.GET.get("page"))
    table = table_of(campaign, page.object_list)
    is_limited = is_valid and any(each not in (None, "") for each in form.cleaned_data.values())
    status = 200 if is_valid else 400
    shown = {"form": form, "page": page, "is_limited": is_limited}
    return common.page(request, campaign, "console/steps.html", status, **table, **shown)


@common.campaign_page()
def step(request: SignedInRequest, campaign: access.SeenCampaign, chain: int, step: int) -> HttpResponse:
    """Show one step whole."""
    comparison = _found(campaign, chain, step)
    context = table_of(campaign, [comparison])
    context |= {
        "within": reverse("console:steps", args=[campaign.pk]),
        "step": context["steps"][0],
        "sides": _sides(campaign, comparison),
        "votes": steps_of.votes_on(comparison),
        "took": comparison.decided_at and duration((comparison.decided_at - comparison.opened_at).total_seconds()),
        "r0": f"{Decimal(comparison.log_r0).exp():.4g}",
        # While votes are out, nobody may know how many of them the proposal needs.
        "uniform": None if comparison.takes_votes else comparison.uniform,
        "suspensions": of_step(comparison),
        "previous": _opened(comparison, step - 1),
        "next": _opened(comparison, step + 1),
    }
    return common.page(request, campaign, "console/step.html", **context)


@common.campaign_page()
def picture(request: SignedInRequest, campaign: access.SeenCampaign, chain: int, step: int, shown: str) -> HttpResponse:
    """Send the picture of one object of a step, with what differs from the other one marked."""
    if shown not in _OBJECTS:
        raise Http404("A step has a current object and a proposal.")
    comparison = _found(campaign, chain, step)
    pair = objects.stored(comparison.current), objects.stored(comparison.proposal)
    wanted, other = pair if shown == "current" else pair[::-1]
    look = replace(media.look_of(request), marked=True)
    return media.response(request, campaign.object_kind, wanted, other, look)


def table_of(campaign: Campaign, steps: Iterable[Comparison]) -> dict[str, Any]:
    """Return what `console/_steps.html` shows of some steps."""
    rule, judges = started_campaign(campaign).config.rule, list(campaign.judges.all())
    rows = steps_of.rows_of(campaign, judges, steps)
    return {
        "steps": rows,
        "judges": judges,
        "deciding": rule.scorers,
        "evidence": rule.evidence,
    }


def _found(campaign: Campaign, chain: int, step: int) -> Comparison:
    found = None if campaign.is_draft else steps_of.step_at(campaign, chain, step)
    if found is None:
        raise Http404("There is no such step yet.")
    return found


def _sides(campaign: Campaign, comparison: Comparison) -> list[dict[str, Any]]:
    """Return what the page shows of either object: its name, the object whole beside the other one, its measures."""
    kind, pair = campaign.object_kind, (comparison.current, comparison.proposal)
    options = kind.options(*(state.content for state in pair))
    at = campaign.pk, comparison.chain.index, comparison.step
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


def _opened(comparison: Comparison, number: int) -> int | None:
    """Return the number of a step of the same chain, if it has been opened."""
    is_there = Comparison.objects.filter(chain=comparison.chain_id, step=number).exists()
    return number if is_there else None


@common.campaign_page(is_started=True)
def chains(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show where the chains are."""
    page = Paginator(chains_of(campaign), _CHAINS_A_PAGE).get_page(request.GET.get("page"))
    shown: dict[str, Any] = {
        "within": campaign.get_absolute_url(),
        "page": page,
        "heads": with_heads(campaign, list(page)),
        "evidence": started_campaign(campaign).config.rule.evidence,
    }
    return common.page(request, campaign, "console/chains.html", **shown)


@common.campaign_page()
def suspended(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """List the suspended steps, with what can be done about each."""
    return _suspended_shown(request, campaign)


@common.campaign_action(Right.RUN, "suspended")
def ask_again(request: HttpRequest, campaign: Campaign, comparison_id: int) -> str:
    """Let people be asked about a suspended step again."""
    comparison = _of(campaign, comparison_id)
    suspension.try_again(comparison.pk)
    return f"Step {comparison.step} of chain {comparison.chain.index} is asked again."


@common.campaign_action(Right.RUN, "suspended")
def end_chain(request: SignedInRequest, campaign: access.SeenCampaign, comparison_id: int) -> HttpResponse | str:
    """End the chain of a suspended step."""
    comparison = _of(campaign, comparison_id)
    form = EndForm(request.POST, auto_id=f"end_{comparison.pk}_%s")
    if not form.is_valid():
        return _suspended_shown(request, campaign, wrong={comparison.pk: form})
    suspension.end_chain(comparison.pk, form.cleaned_data["words"])
    return f"Chain {comparison.chain.index} ends before step {comparison.step}."


def _of(campaign: Campaign, comparison_id: int) -> Comparison:
    whole = Comparison.objects.select_related("chain")
    return get_object_or_404(whole, pk=comparison_id, chain__campaign=campaign)


def _suspended_shown(
    request: SignedInRequest, campaign: access.SeenCampaign, wrong: dict[int, EndForm] | None = None
) -> HttpResponse:
    """Show the suspended steps; `wrong` are forms that could not be read, by the keys of their steps."""
    found = steps_of.suspended_in(campaign)
    forms = {each.pk: EndForm(auto_id=f"end_{each.pk}_%s") for each, _ in found} | (wrong or {})
    shown = [(each, count, forms[each.pk]) for each, count in found]
    return common.page(request, campaign, "console/suspended.html", suspended=shown)
