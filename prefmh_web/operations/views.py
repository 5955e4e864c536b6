"""What probes and scrapers ask. None of it needs a session, a cookie or TLS."""

import ipaddress
import secrets

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from prefmh_web.operations import metrics, readiness


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process is alive. Whoever restarts processes asks here: a restart mends no database."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """This process can serve people: 200, or 503 with the reasons. Whoever sends people asks here."""
    reasons = readiness.reasons()
    return JsonResponse(reasons, status=200 if set(reasons.values()) == {"ok"} else 503)


@require_safe
@never_cache
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Prometheus's page, for addresses in METRICS_ALLOW and bearers of METRICS_TOKEN; nobody when neither is set."""
    if not (_comes_from_inside(request) or _bears_token(request)):
        return HttpResponse("Set METRICS_ALLOW or METRICS_TOKEN.\n", status=403, content_type="text/plain")
    return HttpResponse(metrics.page(), content_type=CONTENT_TYPE_LATEST)


def _comes_from_inside(request: HttpRequest) -> bool:
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR") or "")
    except ValueError:
        # A server listening on a file socket has no address to tell.
        return False
    return any(address in network for network in settings.METRICS_ALLOW)


def _bears_token(request: HttpRequest) -> bool:
    expected = f"Bearer {settings.METRICS_TOKEN}".encode()
    given = request.headers.get("Authorization", "").encode()
    return settings.METRICS_TOKEN is not None and secrets.compare_digest(given, expected)
