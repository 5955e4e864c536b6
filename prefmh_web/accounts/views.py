"""Signing in: with a password, or by a link that a command on the server's own terminal printed.

Failures are counted, successes are not. Before a password is looked at, whoever has failed too often is sent away; so
is, after it was looked at, whoever others guessing at the same moment have overtaken. Of any number of guesses sent
at once, no more are answered than of those sent one by one. Nobody guesses a link: a valid one signs in, however often
somebody at the same address was wrong.
"""

from functools import cached_property

import sesame.views
from django.contrib.auth.views import LoginView
from django.shortcuts import render
from django.utils.decorators import method_decorator

from prefmh_web.transport import rate_limits


@method_decorator(rate_limits.polite, name="dispatch")
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
        # Whoever is refused here has no answer, and takes nothing from the account's owner elsewhere: otherwise a
        # hundred guesses sent at once from one place would lock the account everywhere.
        rate_limits.spend_each(*self._here())
        rate_limits.spend(*self._anywhere())
        return super().form_invalid(form)

    def _check(self) -> None:
        rate_limits.check_each(*self._here(), self._anywhere())

    def _here(self) -> tuple[rate_limits.Use, ...]:
        """Return the rates of one place that a failure counts in, each with whom it counts against."""
        place = rate_limits.by_address(self.request)
        return ("sign-in-address", place), ("sign-in-name-here", self._name, place)

    def _anywhere(self) -> rate_limits.Use:
        return "sign-in-name", self._name

    @cached_property
    def _name(self) -> str:
        """The name that the form looks up, cleaned by the form's own field: blanks around it make no other name."""
        bound = self.get_form()["username"]
        return (bound.field.to_python(bound.data) or "").casefold()


@method_decorator(rate_limits.polite, name="dispatch")
class SignInByLink(sesame.views.LoginView):
    """Sign in whoever opens a signed link, for a day after it was made."""

    def login_failed(self):
        rate_limits.spend("sign-in-address", rate_limits.by_address(self.request))
        return render(self.request, "accounts/link_over.html", status=403)
