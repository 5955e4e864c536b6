"""What the console's views share: who may come and how often, the tabs of a campaign, and how a refusal is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from prefmh_web.accounts.models import SignedInRequest, is_researcher
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Deleted, NotPossible
from prefmh_web.transport import rate_limits

View = Callable[..., Any]
_posts_by_user = rate_limits.posts("forms", rate_limits.by_user)
_previews_by_user = rate_limits.posts("previews", rate_limits.by_user)


def get_page(view: View) -> View:
    """Decorate a view that only shows something, to people who are signed in."""
    return login_required(require_safe(view))


def post_action(view: View) -> View:
    """Decorate a view that only takes form posts, of people who are signed in, as many as one may send."""
    return login_required(require_POST(_posts_by_user(view)))


def preview_action(view: View) -> View:
    """Decorate a view that shows what a form comes to while somebody who is signed in fills it in."""
    return login_required(require_POST(_previews_by_user(view)))


def form_page(view: View) -> View:
    """Decorate a view that shows a form and takes it, from people who are signed in, as often as one may send it."""
    return login_required(require_http_methods(["GET", "HEAD", "POST"])(_posts_by_user(view)))


def for_researchers(view: View) -> View:
    """Decorate a view of people who are signed in, so that only those see it who may make campaigns."""

    @wraps(view)
    def seen(request: HttpRequest, *arguments: Any, **further: Any) -> HttpResponse:
        if not is_researcher(request.user):
            return render(request, "console/researchers_only.html", status=403)
        return view(request, *arguments, **further)

    return seen


def campaign_for(request: HttpRequest, campaign_id: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the signed-in person has this right; 404 for everybody else."""
    found = access.campaigns_for(request.user, right).select_related("catalog", "owner")
    return get_object_or_404(found, pk=campaign_id)


def _to(campaign: Campaign, page: str, further: Mapping[str, Any]) -> HttpResponse:
    page = page or ("campaign" if campaign.is_draft else "edit")
    return redirect(f"console:{page}", campaign.pk, *([further["voter_number"]] if "voter_number" in further else []))


def campaign_page(
    right: Right = Right.WATCH,
    *,
    method: Callable[[View], View] = get_page,
    is_started: bool = False,
    back: str | None = None,
) -> Callable[[View], View]:
    """Decorate a view of a campaign, which it gets in place of the campaign's number.

    Args:
        right: what one needs in the campaign; 404 for everybody else.
        method: what it takes: `get_page`, `form_page` or `post_action`.
        is_started: of a draft there is no such page, and its own page is shown.
        back: the page, by its name, on which is told why the view raises `NotPossible`, or what it has done if it
            returns a text; empty for the one with the setup, links and members, which is a draft's only one.
    """

    def decorate(view: View) -> View:
        @method
        @wraps(view)
        def action(request: HttpRequest, campaign_id: int, **further: Any) -> HttpResponse:
            campaign = campaign_for(request, campaign_id, right)
            if is_started and campaign.is_draft:
                return redirect(campaign)
            try:
                done = view(request, campaign, **further)
            except NotPossible as reason:
                if back is None:
                    raise
                messages.error(request, str(reason))
                return redirect("console:campaigns") if isinstance(reason, Deleted) else _to(campaign, back, further)
            if not isinstance(done, str):
                return done
            if done:
                messages.info(request, done)
            return _to(campaign, back or "", further)

        return action

    return decorate


def campaign_action(right: Right, back: str = "") -> Callable[[View], View]:
    """Decorate a view that takes form posts about a campaign, which it gets as `campaign_page` gives it."""
    return campaign_page(right, method=post_action, back=back)


TABS = {
    "Overview": ("console:campaign", Right.WATCH),
    "Steps": ("console:steps", Right.WATCH),
    "People": ("console:people", Right.RUN),
    "Convergence": ("console:convergence", Right.WATCH),
    "Results": ("console:results", Right.WATCH),
    "Setup": ("console:edit", Right.WATCH),
    "Record": ("console:record", Right.WATCH),
}
"""The pages of a started campaign: the label of each, the name of its address, and the right that it takes."""


def frame(request: SignedInRequest, campaign: access.SeenCampaign) -> dict[str, Any]:
    """Return what all pages need: the campaign, its kind of objects, the reader's rights and the tabs that they see.

    A draft has no tabs.
    """
    right = access.right_in(campaign, request.user)
    seen = {label: address for label, (address, needed) in TABS.items() if needed <= right}
    return {
        "campaign": campaign,
        "kind": campaign.object_kind,
        "site": request.build_absolute_uri("/").removesuffix("/"),
        "may_run": right >= Right.RUN,
        "may_own": right >= Right.OWN,
        "tabs": {} if campaign.is_draft else seen,
    }


def page(
    request: SignedInRequest, campaign: access.SeenCampaign, template: str, status: int = 200, **shown: Any
) -> HttpResponse:
    """Return a page of a campaign, or a part of one, that shows what `frame` returns and more."""
    return render(request, template, frame(request, campaign) | shown, status=status)


def invited(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """Return the link to send to voters, if one is open, and where it is pasted."""
    found = campaign.invitations.filter(
        panelist__isnull=True, is_single_use=False, is_simulated=False, revoked_at__isnull=True
    )
    invitation, platform = found.order_by("pk").first(), campaign.config.study.platform
    link = invitation and platform.link(request.build_absolute_uri(invitation.get_absolute_url()))
    return {"invitation": invitation, "platform": platform, "link": link}


def prefix_of(campaign: Campaign) -> str:
    """Return how the name of a campaign's files begins."""
    return slugify(campaign.name)[:60] or f"campaign-{campaign.pk}"


def attachment(
    request: HttpRequest, response: HttpResponse | StreamingHttpResponse, filename: str
) -> HttpResponse | StreamingHttpResponse:
    """Return an answer as a download of this name; the content is left out where only the headers are asked for."""
    if request.method == "HEAD":
        response = HttpResponse(content_type=response["Content-Type"])
    # Nothing on the way may keep what this person may read, for another who may not.
    response["Cache-Control"] = "no-store"
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response
