"""The researcher's model endpoints: register, test with one click, see how they are doing."""

from typing import ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.model_judges.frozen_judges import using
from prefmh_web.console.views.campaigns import posts_by_user
from prefmh_web.endpoints import testing
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint

_WHERE = ("base_url", "model", "api_key_variable", "kind", "thinking_tokens")
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

    field_order = ("name", "base_url", "kind", "model")

    class Meta:
        model = Endpoint
        fields = (
            "name", "base_url", "model", "api_key_variable", "concurrency", "requests_a_minute", "tokens_a_minute",
            "timeout_s", "input_price", "output_price", "thinking_tokens",
        )  # fmt: skip
        labels: ClassVar = {
            "base_url": "Base URL",
            "api_key_variable": "Name of the environment variable with the key",
            "timeout_s": "Timeout of a request, in seconds",
            "concurrency": "Parallel requests at most",
            "requests_a_minute": "Requests a minute at most",
            "tokens_a_minute": "Tokens a minute at most",
            "input_price": "Price per million input tokens",
            "output_price": "Price per million output tokens",
            "thinking_tokens": "Thinking tokens at most",
        }
        help_texts: ClassVar = {
            "concurrency": "How many serve the server best is found by trying.",
            "requests_a_minute": "As your provider states it. Empty: no limit.",
            "tokens_a_minute": "Read and written together, as your provider states it. Empty: no limit.",
            "thinking_tokens": "For a model that is to think first. Empty: it is kept from thinking where it can be.",
            "api_key_variable": "The name, not the key itself. Leave empty to send no key.",
        }

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial["kind"] = self.instance.dialect if self.instance.dialect_is_declared else ""

    def clean(self):
        """Refuse to make another judge of one that a campaign is asking."""
        cleaned = super().clean()
        changed = [name for name in _IDENTITY if name in self.changed_data]
        if self.instance.pk and changed and (campaigns := using(self.instance, self.initial.get("name", ""))):
            names = ", ".join(f"“{campaign}”" for campaign in campaigns)
            message = f"This cannot be changed while {names} uses it. Register "
            for name in changed:
                self.add_error(name, message + "another endpoint, or wait until the campaign is finished.")
        return cleaned

    def save(self, commit=True):
        kind = self.cleaned_data["kind"]
        self.instance.dialect_is_declared = bool(kind)
        self.instance.dialect = kind or self.instance.dialect
        return super().save(commit)

    def clean_name(self):
        name = self.cleaned_data["name"]
        others = Endpoint.objects.filter(owner=self.instance.owner, name=name).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("You already have an endpoint with this name.")
        return name


@login_required
@require_safe
def endpoints(request: SignedInRequest) -> HttpResponse:
    """List the researcher's endpoints with what they have done and cost."""
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    mine = list(Endpoint.objects.filter(owner=request.user))
    return render(request, "console/endpoints.html", {"endpoints": [_card(each) for each in mine]})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
def edit(request: SignedInRequest, endpoint_id: int | None = None) -> HttpResponse:
    """Register an endpoint, or change one."""
    if not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    endpoint = Endpoint(owner=request.user) if endpoint_id is None else _mine(request, endpoint_id)
    form = EndpointForm(request.POST or None, instance=endpoint)
    if request.method == "POST" and form.is_valid():
        if endpoint.pk and set(_WHERE) & set(form.changed_data):
            endpoint.forget_test()
            testing.stop(endpoint, "The endpoint was changed.")
        form.save()
        return redirect("console:endpoints")
    return render(request, "console/endpoint.html", {"form": form, "endpoint": endpoint})


@login_required
@require_POST
@posts_by_user
def test(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Begin a test of an endpoint; its card shows how far it is, and what it saw."""
    endpoint = _mine(request, endpoint_id)
    try:
        testing.begin(endpoint)
    except testing.UnderWay as reason:
        messages.error(request, str(reason))
    except Endpoint.DoesNotExist:
        messages.info(request, f"{endpoint.name} was removed in this moment.")
    return redirect("console:endpoints")


@login_required
@require_safe
def progress(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Show an endpoint's card as it is now."""
    return render(request, "console/_endpoint.html", _card(_mine(request, endpoint_id)))


@login_required
@require_POST
@posts_by_user
def stop(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Stop a test."""
    testing.stop(_mine(request, endpoint_id))
    return redirect("console:endpoints")


@login_required
@require_POST
@posts_by_user
def remove(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Remove an endpoint that no campaign has used."""
    endpoint = _mine(request, endpoint_id)
    try:
        endpoint.delete()
    # Protected, or taken by a campaign that starts in this very moment.
    except IntegrityError:
        messages.error(request, f"{endpoint.name} cannot be removed, because a campaign uses it.")
    return redirect("console:endpoints")


def _mine(request: SignedInRequest, endpoint_id: int) -> Endpoint:
    return get_object_or_404(Endpoint, pk=endpoint_id, owner=request.user)


def _card(endpoint: Endpoint) -> dict[str, object]:
    return {"endpoint": endpoint, "figures": _figures(endpoint), "test": endpoint.tests.last()}


def _figures(endpoint: Endpoint) -> dict[str, float | None]:
    totals = endpoint.totals()
    latency = totals["seconds"] / totals["answered"] if totals["answered"] else None
    return totals | {"errors": totals["requests"] - totals["answered"], "latency": latency}
