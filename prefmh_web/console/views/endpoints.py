"""A researcher's model endpoints (registered, tested, with what they have done), the tokens of their programs, and
trying a model of a draft before it starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import mean
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import ProtectedError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache

import sampler
from prefmh_web.accounts.models import ApiToken, SignedInRequest, TokenLimitError
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.lifecycle import access, judge_trials
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.lifecycle.judge_trials import Reply, read
from prefmh_web.campaigns.model_judges.judges import using
from prefmh_web.campaigns.models import Campaign, JudgeTrial, NotPossible, TrialPair
from prefmh_web.campaigns.monitoring.judging import Share, price_of
from prefmh_web.console.views import common
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.objects import media

_WHERE = ("base_url", "model", "api_key_variable", "kind", "thinking_tokens")
# The address is asked for its models as soon as it is entered.
_LISTS_MODELS = {
    # With what else is in the form. By POST: should a key be pasted there, no log of addresses has it.
    "hx-post": reverse_lazy("console:models-there"),
    "hx-trigger": "change",
    "hx-target": "#models-there",
}
# In an address, what may be a key.
_KEY_IN_ADDRESS = re.compile(r"(?<=//)[^/@]*@|[?#].*")
# What a campaign that was started with an endpoint relies on; keys, prices and limits may change.
_IDENTITY = ("name", "base_url", "model", "kind", "thinking_tokens")


class EndpointForm(forms.ModelForm):
    """Where a model is and what it may cost."""

    kind = forms.ChoiceField(
        choices=(("", "Find out in the test"), *Dialect.choices),
        required=False,
        label="Kind of server",
        help_text="Choose one where a proxy hides it.",
    )

    # The page folds all but the first three.
    field_order = ("name", "base_url", "model", "kind")

    class Meta:
        model = Endpoint
        fields = (
            "name", "base_url", "model", "api_key_variable", "concurrency", "requests_per_minute", "tokens_per_minute",
            "timeout_s", "input_price", "output_price", "thinking_tokens",
        )  # fmt: skip
        labels: ClassVar = {
            "base_url": "Base URL",
            "api_key_variable": "Name of the environment variable with the key",
            "timeout_s": "Timeout of a request, in seconds",
            "concurrency": "Parallel requests at most",
            "requests_per_minute": "Requests a minute at most",
            "tokens_per_minute": "Tokens a minute at most",
            "input_price": "Price per million input tokens",
            "output_price": "Price per million output tokens",
            "thinking_tokens": "Thinking tokens at most",
        }
        help_texts: ClassVar = {
            "concurrency": "How many serve the server best is found by trying.",
            "requests_per_minute": "As your provider states it. Empty: no limit.",
            "tokens_per_minute": "Read and written together, as your provider states it. Empty: no limit.",
            "thinking_tokens": "For a model that is to think first. Empty: it is kept from thinking where it can be.",
            "api_key_variable": "The name, not the key itself. Leave empty to send no key.",
        }

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if settings.EMBEDDED:
            # Elsewhere the pages are served by processes that may not reach the server: Test tells its models.
            self.fields["base_url"].widget.attrs |= _LISTS_MODELS
        self.fields["model"].widget.attrs["list"] = "models"
        self.initial["kind"] = self.instance.dialect if self.instance.dialect_is_declared else ""

    def clean(self):
        """Refuse to make another judge of one that a campaign is asking."""
        cleaned = super().clean()
        changed = [name for name in _IDENTITY if name in self.changed_data]
        if self.instance.pk and changed and (campaigns := using(self.instance, self.initial.get("name", ""))):
            names = ", ".join(f"“{campaign}”" for campaign in campaigns)
            message = f"This cannot be changed while {names} uses it, or may be extended with it. "
            for name in changed:
                self.add_error(name, message + "Register another endpoint.")
        return cleaned

    def save(self, commit=True):
        kind = self.cleaned_data["kind"]
        self.instance.dialect_is_declared = bool(kind)
        self.instance.dialect = kind or self.instance.dialect
        return super().save(commit)

    def clean_api_key_variable(self):
        """Refuse what is no name of a variable for keys: it may be a key, so it is not sent back in the page."""
        name = self.cleaned_data["api_key_variable"]
        if name and name not in settings.ENDPOINT_KEYS:
            self.data = dict(self.data.items()) | {"api_key_variable": ""}
            raise forms.ValidationError(
                "Enter the name of the variable that holds the key, such as OPENAI_API_KEY, and not the key itself. "
                "Whoever runs this site names the variables that keys are read from in ENDPOINT_KEYS."
            )
        return name

    def clean_base_url(self):
        """Return the address, which is refused with a password or a query; they do not come back in the page."""
        address = self.cleaned_data["base_url"]
        self.data = dict(self.data.items()) | {"base_url": _KEY_IN_ADDRESS.sub("", address)}
        return address

    def clean_name(self):
        name = self.cleaned_data["name"]
        others = Endpoint.objects.filter(owner=self.instance.owner, name=name).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("You already have an endpoint with this name.")
        return name


@common.get_page
@common.for_researchers
def endpoints(request: SignedInRequest) -> HttpResponse:
    """List the researcher's endpoints with what they have done and cost."""
    mine = list(Endpoint.objects.filter(owner=request.user))
    return render(request, "console/endpoints.html", {"endpoints": [_card(each) for each in mine]})


@common.form_page
@common.for_researchers
@transaction.atomic
def edit(request: SignedInRequest, endpoint_id: int | None = None) -> HttpResponse:
    """Register an endpoint, or change one."""
    endpoint = Endpoint(owner=request.user) if endpoint_id is None else _held(request, endpoint_id)
    form = EndpointForm(request.POST or None, instance=endpoint)
    if request.method == "POST" and form.is_valid():
        if endpoint.pk and set(_WHERE) & set(form.changed_data):
            endpoint.forget_test()
            probe.stop(endpoint, "The endpoint was changed.")
        saved = form.save()
        if "test" in request.POST:
            _begin_test(request, saved)
        return redirect("console:endpoints")
    return render(request, "console/endpoint.html", {"form": form, "endpoint": endpoint})


@common.preview_action
@common.for_researchers
def models(request: SignedInRequest) -> HttpResponse:
    """Show which models the server at an address lists, or what is wrong with the address."""
    endpoint = Endpoint(owner=request.user, base_url=request.POST.get("base_url", "")[:500].strip())
    variable = request.POST.get("api_key_variable", "")
    endpoint.api_key_variable = variable if variable in settings.ENDPOINT_KEYS else ""
    names, why_none = probe.listed(endpoint) if endpoint.base_url else ([], "")
    return render(request, "console/_models_there.html", {"names": names, "why_none": why_none})


@common.post_action
def test(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Begin a test of an endpoint; its card shows how far it is, and what it saw."""
    _begin_test(request, _mine(request, endpoint_id))
    return redirect("console:endpoints")


def _begin_test(request: SignedInRequest, endpoint: Endpoint) -> None:
    try:
        probe.begin(endpoint)
    except probe.UnderWay as reason:
        messages.error(request, str(reason))
    except Endpoint.DoesNotExist:
        messages.info(request, f"{endpoint.name} was removed in this moment.")


@common.post_action
def stop(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Stop a test."""
    probe.stop(_mine(request, endpoint_id))
    return redirect("console:endpoints")


@common.post_action
@transaction.atomic
def remove(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Remove an endpoint that no campaign has used."""
    endpoint = _held(request, endpoint_id)
    is_used = bool(using(endpoint, endpoint.name))
    try:
        if not is_used:
            endpoint.delete()
    except ProtectedError:
        is_used = True
    if is_used:
        messages.error(request, f"{endpoint.name} cannot be removed, because a campaign uses it.")
    return redirect("console:endpoints")


def _mine(request: SignedInRequest, endpoint_id: int) -> Endpoint:
    return get_object_or_404(Endpoint, pk=endpoint_id, owner=request.user)


def _held(request: SignedInRequest, endpoint_id: int) -> Endpoint:
    """Return one that no campaign can start with before this transaction ends."""
    return get_object_or_404(Endpoint.objects.select_for_update(), pk=endpoint_id, owner=request.user)


def _card(endpoint: Endpoint) -> dict[str, object]:
    _, words = truth.untruncated(endpoint)
    return {
        "endpoint": endpoint,
        "figures": endpoint.totals,
        "test": endpoint.tests.last(),
        "most": probe.most(endpoint),
        "untestable": truth.why_untestable(endpoint),
        "distribution": words,
    }


class TokenForm(forms.Form):
    """What a token is called, and what it may do."""

    name = forms.CharField(
        max_length=60, label="Name", help_text="For you: which program has it, such as “analysis notebook”."
    )
    scope = forms.ChoiceField(
        choices=ApiToken.Scope.choices, widget=forms.RadioSelect, initial=ApiToken.Scope.READ, label="It may"
    )


@common.form_page
@never_cache
def tokens(request: SignedInRequest) -> HttpResponse:
    """List the tokens, and create one, which this answer alone shows."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    plain = ""
    if form.is_bound and form.is_valid():
        try:
            plain = ApiToken.make(request.user, **form.cleaned_data)
            form = TokenForm()
        except TokenLimitError as reason:
            form.add_error(None, str(reason))
    context = {"form": form, "tokens": ApiToken.live_of(request.user), "plain": plain}
    return render(request, "console/tokens.html", context, status=400 if form.errors else 200)


@common.post_action
def withdraw(request: SignedInRequest, token_id: int) -> HttpResponse:
    """Let no program in by a token any more."""
    token = get_object_or_404(ApiToken, pk=token_id, owner=request.user)
    token.withdraw()
    messages.info(request, f"The token “{token.name}” is withdrawn. Programs that use it are refused from now on.")
    return redirect("console:tokens")


def _tried(campaign: Campaign, trial: JudgeTrial) -> dict[str, Any]:
    """Return what to show of a trial: its pairs, and figures over all their replies."""
    pairs = [_pair(campaign, pair) for pair in trial.pairs]
    replies: list[Reply] = [reply for pair in pairs for reply in pair["replies"]]
    told = [reply.preference for reply in replies if reply.preference is not None]
    votes = [reply.chosen == reply.first for reply in replies if reply.chosen is not None]
    both = [each["choice"] == each["preferred"] for each in pairs if None not in (each["choice"], each["preferred"])]
    return {
        "trial": trial,
        "pairs": pairs,
        "done": sum(bool(pair["replies"]) for pair in pairs),
        "unreadable": sum(bool(reply.problem) for reply in replies),
        "mean_seconds": mean(reply.seconds for reply in replies) if replies else None,
        # The mean probability of a vote for what stands first, where it was told; else, of the votes for it.
        "mean_p_first": mean(told) if told else None,
        "first_shown": Share(sum(votes), len(votes)) if votes else None,
        # Of the pairs in which both prefer one.
        "agreement": Share(sum(both), len(both)) if both else None,
        "price": price_of(trial.cost, trial.unpriced),
    }


def _pair(campaign: Campaign, pair: TrialPair) -> dict[str, Any]:
    """Return one pair with the model's replies, and which object the researcher and the model prefer."""
    replies = read(pair["replies"])
    by_first = [[reply for reply in replies if reply.first == first] for first in (0, 1)]
    return {
        "preferred": pair["preferred"],
        "states": judge_trials.rows_of(campaign, pair),
        "replies": replies,
        # The model rates one object at a time.
        "shows_one": any(reply.rating is not None for reply in replies),
        "orders": [(number, _words(some), some) for number, some in enumerate(by_first, start=1) if some],
        "choice": _choice(by_first),
    }


def _choice(by_first: list[list[Reply]]) -> int | None:
    """Return which object the model is for, 0 or 1, both orders weighing the same; None where it is for neither."""
    ratings = [[reply.rating for reply in replies if reply.rating is not None] for replies in by_first]
    shares = [[s for reply in replies if (s := reply.for_first_object) is not None] for replies in by_first]
    if all(ratings):
        gap = mean(ratings[0]) - mean(ratings[1])
    elif all(shares):
        gap = mean(map(mean, shares)) - 0.5
    else:
        return None
    return None if gap == 0 else int(gap < 0)


def _words(replies: list[Reply]) -> str:
    if told := [reply.preference for reply in replies if reply.preference is not None]:
        return f"p = {mean(told):.3f} for what stands first"
    if rated := [reply.rating for reply in replies if reply.rating is not None]:
        return f"rated {mean(rated):.3g}"
    votes = [reply.chosen for reply in replies if reply.chosen is not None]
    if not votes:
        return "no readable reply"
    return ", ".join(f"{votes.count(side)} for object {side + 1}" for side in (0, 1))


class TryForm(forms.Form):
    """How much is asked."""

    pairs = forms.IntegerField(
        min_value=1,
        max_value=judge_trials.MAX_PAIRS,
        initial=5,
        label=f"Sample pairs (at most {judge_trials.MAX_PAIRS})",
    )
    replies = forms.IntegerField(
        min_value=1,
        max_value=judge_trials.MAX_REPLIES,
        initial=1,
        label=f"Replies for each order (at most {judge_trials.MAX_REPLIES})",
        help_text="Not used with log-probabilities: one request for each order tells p.",
    )


@common.campaign_page(Right.OWN, method=common.form_page)
def try_judge(request: SignedInRequest, campaign: access.SeenCampaign, index: int) -> HttpResponse:
    """Show what the last trial of a judge has come to; begin another one."""
    judge = _judge(campaign, index)
    form = TryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            judge_trials.begin(campaign, index, **form.cleaned_data)
        except NotPossible as reason:
            messages.error(request, str(reason))
        return redirect("console:try", campaign.pk, index)
    trial = campaign.judge_trials.filter(judge_index=index).last()
    shown: dict[str, Any] = {
        "judge": judge,
        "form": form,
        "tried": trial and _tried(campaign, trial),
        "is_current": trial is not None and trial.judge == judge.model_dump(mode="json"),
    }
    return common.page(request, campaign, "console/try.html", **shown)


@common.campaign_action(Right.OWN)
def change_trial(
    request: HttpRequest, campaign: Campaign, trial_id: int, change: Callable[[JudgeTrial], None]
) -> HttpResponse:
    """Ask no more in a trial, or for what is missing."""
    trial = _trial(campaign, trial_id)
    try:
        change(trial)
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("console:try", campaign.pk, trial.judge_index)


@common.campaign_action(Right.OWN)
def prefer(request: SignedInRequest, campaign: access.SeenCampaign, trial_id: int, pair: int) -> HttpResponse:
    """Keep which object of a pair the researcher prefers."""
    trial = _trial(campaign, trial_id, pair)
    if (preferred := request.POST.get("preferred", "")) not in ("0", "1"):
        raise Http404
    judge_trials.prefer(trial, pair, int(preferred))
    return redirect("console:try", campaign.pk, trial.judge_index)


@common.campaign_page(Right.OWN)
def tried_picture(
    request: SignedInRequest, campaign: access.SeenCampaign, trial_id: int, pair: int, which: int
) -> HttpResponse:
    """Send the picture of an object of a pair."""
    if which not in (0, 1):
        raise Http404
    row = judge_trials.rows_of(campaign, _trial(campaign, trial_id, pair).pairs[pair])[which]
    return media.response(request, campaign.object_kind, objects.stored(row))


def _judge(campaign: Campaign, index: int) -> sampler.JudgeConfig:
    judges = campaign.config.judges
    if index >= len(judges) or not isinstance(judges[index].source, sampler.ModelSource):
        raise Http404
    return judges[index]


def _trial(campaign: Campaign, trial_id: int, pair: int | None = None) -> JudgeTrial:
    """Return a trial; 404 where it has no pair of this number."""
    trial = get_object_or_404(JudgeTrial, pk=trial_id, campaign=campaign)
    if pair is not None and pair >= len(trial.pairs):
        raise Http404
    return trial
