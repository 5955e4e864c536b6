"""Signing in: with a password, or by a link that a command on the server's own terminal printed."""

import unicodedata

import sesame.views
from django.contrib.auth.views import LoginView
from django.shortcuts import render
from django.utils.decorators import method_decorator

from prefmh_web import limits


@method_decorator(limits.polite, name="dispatch")
class SignIn(LoginView):
    """Sign in with a password, so often that nobody guesses one."""

    template_name = "accounts/sign_in.html"

    def post(self, request, *args, **kwargs):
        name = unicodedata.normalize("NFKC", request.POST.get("username", "")).casefold()
        limits.spend("sign-in-address", limits.by_address(request))
        limits.spend("sign-in-name-here", name, limits.by_address(request))
        limits.spend("sign-in-name", name)
        return super().post(request, *args, **kwargs)


@method_decorator(limits.polite, name="dispatch")
class SignInByLink(sesame.views.LoginView):
    """Sign in whoever opens a signed link, for a day after it was made."""

    def get(self, request, *args, **kwargs):
        limits.spend("sign-in-address", limits.by_address(request))
        return super().get(request, *args, **kwargs)

    def login_failed(self):
        return render(self.request, "accounts/link_over.html", status=403)
