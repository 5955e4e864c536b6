"""The tokens by which a researcher's programs use the API."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from prefmh_web.accounts import tokens as kept
from prefmh_web.accounts.models import ApiToken
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.console.forms.token import TokenForm
from prefmh_web.console.views.campaigns import posts_by_user


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_by_user
@never_cache
def tokens(request: SignedInRequest) -> HttpResponse:
    """List the tokens, and create one, which this answer alone shows."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    plain = ""
    if form.is_bound and form.is_valid():
        try:
            scope = ApiToken.Scope(form.cleaned_data["scope"])
            _, plain = kept.make(request.user, form.cleaned_data["name"], scope)
            form = TokenForm()
        except kept.TokenLimitError as reason:
            form.add_error(None, str(reason))
    context = {"form": form, "tokens": kept.live_tokens(request.user), "plain": plain}
    return render(request, "console/tokens.html", context, status=400 if form.errors else 200)


@login_required
@require_POST
@posts_by_user
def withdraw(request: SignedInRequest, token_id: int) -> HttpResponse:
    """Let no program in by a token any more."""
    token = get_object_or_404(ApiToken, pk=token_id, owner=request.user)
    kept.withdraw(token)
    messages.info(request, f"The token “{token.name}” is withdrawn. Programs that use it are refused from now on.")
    return redirect("console:tokens")
