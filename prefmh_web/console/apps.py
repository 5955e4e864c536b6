from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_out


class ConsoleConfig(AppConfig):
    name = "prefmh_web.console"

    def ready(self):
        user_logged_out.connect(_close_pages, dispatch_uid="console.close_pages")


def _close_pages(request, **_) -> None:
    """Close the live pages of a session that signs out."""
    from prefmh_web.transport import sockets

    sockets.nudge(sockets.session(request.session.session_key))
