"""Finding what a request is about."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right


def campaign_for(request: HttpRequest, number: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the token's owner has this right; 404 for everybody else."""
    return get_object_or_404(access.campaigns_for(request.user, right).select_related("owner"), pk=number)
