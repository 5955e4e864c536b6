"""The researcher's model endpoints: register, test with one click, see how they are doing."""

from typing import ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import DatabaseError, IntegrityError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from prefmh_web.accounts.roles import SignedInRequest, is_researcher
from prefmh_web.campaigns.model_judges.frozen_judges import using
from prefmh_web.console.views.campaigns import posts_by_user
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import Report, probe

_WHERE = ("base_url", "model", "api_key_variable")
# What a campaign that was started with an endpoint relies on; keys, prices and limits may change.
_IDENTITY = ("name", "base_url", "model")


class EndpointForm(forms.ModelForm):
    """Where a model is and what it may cost."""

    class Meta:
        model = Endpoint
        fields = (
            "name", "base_url", "model", "api_key_variable", "concurrency", "timeout_s", "input_price", "output_price",
        )  # fmt: skip
        labels: ClassVar = {
            "base_url": "Base URL",
            "api_key_variable": "Name of the environment variable with the key",
            "timeout_s": "Timeout of a request, in seconds",
            "concurrency": "Parallel requests",
            "input_price": "Price per million input tokens",
            "output_price": "Price per million output tokens",
        }
        help_texts: ClassVar = {
            "concurrency": "",
            "api_key_variable": "The name, not the key itself. Leave empty to send no key.",
        }

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
    return render(request, "console/endpoints.html", {"endpoints": [(each, _figures(each)) for each in mine]})


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
        form.save()
        return redirect("console:endpoints")
    return render(request, "console/endpoint.html", {"form": form, "endpoint": endpoint})


@login_required
@require_POST
@posts_by_user
def test(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """Try an endpoint and say what it can do."""
    endpoint = _mine(request, endpoint_id)
    try:
        report = probe(endpoint)
    except (DatabaseError, Endpoint.DoesNotExist):
        if Endpoint.objects.filter(pk=endpoint_id).exists():
            raise
        messages.info(request, f"{endpoint.name} was removed while it was tested.")
        return redirect("console:endpoints")
    if report.failure:
        messages.error(request, f"Test of {endpoint.name} failed: {report.failure.reason}")
    else:
        messages.success(request, f"{endpoint.name} works. Average time of a request: {report.seconds:.2f} s.")
    _say_what_was_seen(request, report)
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


def _say_what_was_seen(request: SignedInRequest, report: Report) -> None:
    """Tell how the kind of server was found out, and why a check did not pass."""
    if report.attempts:
        seen = "; ".join(f"{attempt.path}: {attempt.words}" for attempt in report.attempts)
        kind = f"taken for {Dialect(report.dialect).label}" if report.failure is None else "not settled"
        messages.info(request, f"Kind of server: {kind}. What it answered: {seen}.")
    for finding in report.findings:
        if not finding.passed:
            messages.info(request, f"No ✓ for {finding.check}: {finding.words}.")


def _figures(endpoint: Endpoint) -> dict[str, float | None]:
    totals = endpoint.totals()
    latency = totals["seconds"] / totals["answered"] if totals["answered"] else None
    return totals | {"errors": totals["requests"] - totals["answered"], "latency": latency}
