"""Who may see and do what in a campaign. The one door through which memberships and invitations are written.

    watch   see the page, download the record        viewers
    run     also start, pause, resume and invite     managers
    own     also members, setup and deletion         the owner, and admins

Withdrawing access closes pages and returns leases at once; votes stay, as the method demands. After the start nobody
takes a panelist's place, and nobody is sent away: another person has another score, and the chains that came so far
were decided by the first one.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import TYPE_CHECKING, TypedDict

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Campaign, Deleted, Invitation, Membership, NotPossible, Voter, columns_of
from prefmh_web.transport import sockets

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _Member(TypedDict):
        role: Membership.Role

    SeenCampaign = WithAnnotations[Campaign, _Member]


class Right(IntEnum):
    """What somebody may do in a campaign; each right includes those below it."""

    WATCH = 1
    RUN = 2
    OWN = 3


_RIGHT_OF = {Membership.Role.VIEWER: Right.WATCH, Membership.Role.MANAGER: Right.RUN}


def campaigns_for(user: User | AnonymousUser, right: Right = Right.WATCH) -> QuerySet[SeenCampaign]:
    """Return the campaigns in which `user` has this right, each with their `role` as a member, if any."""
    memberships = Membership.objects.filter(campaign=OuterRef("pk"), user=user.pk)
    found = Campaign.objects.exclude(status=Campaign.Status.DELETING)
    found = found.annotate(role=Subquery(memberships.values("role")))
    if not (user.is_authenticated and user.is_active):
        return found.none()
    if user.is_superuser:
        return found
    roles = [role for role, granted in _RIGHT_OF.items() if granted >= right]
    return found.filter(Q(owner=user.pk) | Q(role__in=roles))


def right_in(campaign: SeenCampaign, user: User) -> Right:
    """Return the right `user` has in a campaign that `campaigns_for` found for them."""
    if user.is_superuser or campaign.owner_id == user.pk:
        return Right.OWN
    return _RIGHT_OF[campaign.role]


def add_member(campaign: Campaign, username: str, role: Membership.Role) -> Membership:
    """Let somebody with an account see a campaign; change their role if they are a member already.

    Raises:
        NotPossible: there is no such account, or it is the owner's; or the campaign is deleted.
    """
    user = get_user_model().objects.filter(username=username, is_active=True).first()
    if user is None:
        raise NotPossible(
            f"There is no account “{username}”. The person who runs the server creates one with manage.py researcher."
        )
    if user.pk == campaign.owner_id:
        raise NotPossible(f"{username} owns this campaign.")
    with transaction.atomic():
        # Locked: nobody deletes it meanwhile.
        if not Campaign.objects.select_for_update(no_key=True).filter(pk=campaign.pk).exists():
            raise Deleted
        member, _ = Membership.objects.update_or_create(campaign=campaign, user=user, defaults={"role": role})
        events.note(campaign.pk, events.Kind.MEMBER_SET, said={"role": role})
    return member


def remove_member(member: Membership) -> None:
    """Let somebody see a campaign no more; their open pages close."""
    with transaction.atomic():
        if Membership.objects.filter(pk=member.pk).delete()[0]:
            events.note(member.campaign_id, events.Kind.MEMBER_REMOVED, said={"role": member.role})
        sockets.notify(sockets.watchers(member.campaign_id))


def invite(campaign: Campaign, *, is_single_use: bool = False) -> Invitation:
    """Make another link, for one person or for many.

    Raises:
        NotPossible: the campaign is a draft, or a panel, whose panelists have their links.
    """
    require_no_panel(campaign)
    if campaign.is_draft:
        raise NotPossible("Start the campaign first. Then you can create links.")
    return Invitation.objects.create(campaign=campaign, is_single_use=is_single_use)


def revoke(invitation: Invitation, *, withdraw: bool = False) -> None:
    """Let nobody else join by a link; `withdraw` also ends the access of those who have.

    Raises:
        NotPossible: it is the link of a panelist.
    """
    require_no_panel(invitation.campaign)
    with transaction.atomic():
        # Whoever joins holds the row, so this waits for them: nobody slips in between the two lines.
        Invitation.objects.filter(pk=invitation.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
        if withdraw:
            _withdraw(invitation.voters.all())


def remove(voter: Voter) -> None:
    """Let one voter vote no more.

    A link for many admits them again, as somebody new: nothing tells a fresh browser from another person.

    Raises:
        NotPossible: they are on a panel.
    """
    require_no_panel(voter.campaign)
    with transaction.atomic():
        _withdraw(Voter.objects.filter(pk=voter.pk))


def forget_names(campaign: Campaign, numbers: Collection[int]) -> int:
    """Put their numbers in the place of panelists' names; return how many had one. The distribution is the same."""
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        names = locked.config.panelists
        gone = {names[number - 1] for number in numbers if names[number - 1] != str(number)}
        if gone:
            config = locked.typed_config
            judges = tuple(
                without if isinstance(judge.source, sampler.PanelistSource) and judge.source.name in gone else judge
                for judge, without in zip(config.judges, sampler.unnamed(config.judges), strict=True)
            )
            columns = columns_of(config.model_copy(update={"judges": judges}))
            Campaign.objects.filter(pk=campaign.pk).update(**columns)
    return len(gone)


def remind(campaign: Campaign, panelist: int) -> None:
    """Note that a panelist was reminded, now."""
    events.note(campaign.pk, events.Kind.REMINDED, said={"panelist": panelist})


def require_no_panel(campaign: Campaign) -> None:
    """Require that people of a campaign may come and go.

    Raises:
        NotPossible: they are a panel.
    """
    if campaign.has_panel:
        raise NotPossible(
            "Nobody joins a panel, leaves it for somebody else or is removed from it after the start: the chains would "
            "then sample another distribution. If somebody has left for good, end the campaign on the panel's page."
        )


def _withdraw(people: QuerySet[Voter]) -> None:
    ids = list(people.filter(removed_at__isnull=True).values_list("pk", flat=True))
    people.filter(pk__in=ids).update(removed_at=timezone.now())
    sockets.notify(*map(sockets.voter, ids))
    # After the commit: whoever returns a lease locks its comparison, which nobody does while holding a voter.
    transaction.on_commit(lambda: leases.withdraw(ids), robust=True)
