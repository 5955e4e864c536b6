"""Signing in: with a password, or by a link that a command on the server's own terminal printed.

Failures are counted, successes are not. Before a password is looked at, whoever has failed too often is sent away; so
is, after it was looked at, whoever others guessing at the same moment have overtaken. Of any number of guesses sent
at once, no more are answered than of those sent one by one.
"""

import unicodedata

import sesame.views
from django.contrib.auth.views import LoginView
from django.shortcuts import render
from django.utils.decorators import method_decorator

from prefmh_web import limits


@method_decorator(limits.polite, name="dispatch")
class SignIn(LoginView):
    """Sign in with a password; nobody guesses one."""

    template_name = "accounts/sign_in.html"

    def post(self, request, *args, **kwargs):
        self._check()
        return super().post(request, *args, **kwargs)

    def form_valid(self, form):
        self._check()
        return super().form_valid(form)

    def form_invalid(self, form):
        for counted in self._counted():
            limits.spend(*counted)
        return super().form_invalid(form)

    def _check(self) -> None:
        for counted in self._counted():
            limits.check(*counted)

    def _counted(self) -> tuple[tuple[str, ...], ...]:
        """Return the rates that a failure counts in, each with whom it counts against."""
        name = unicodedata.normalize("NFKC", self.request.POST.get("username", "")).casefold()
        here = limits.by_address(self.request)
        return ("sign-in-address", here), ("sign-in-name-here", name, here), ("sign-in-name", name)


@method_decorator(limits.polite, name="dispatch")
class SignInByLink(sesame.views.LoginView):
    """Sign in whoever opens a signed link, for a day after it was made."""

    def get(self, request, *args, **kwargs):
        limits.check("sign-in-address", limits.by_address(request))
        return super().get(request, *args, **kwargs)

    def login_failed(self):
        limits.spend("sign-in-address", limits.by_address(self.request))
        return render(self.request, "accounts/link_over.html", status=403)
