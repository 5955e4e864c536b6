"""Signing in by a link that a command on the server's own terminal printed."""

import sesame.views
from django.shortcuts import render


class SignInByLink(sesame.views.LoginView):
    """Sign in whoever opens a signed link, for a day after it was made."""

    def login_failed(self):
        return render(self.request, "accounts/link_over.html", status=403)
