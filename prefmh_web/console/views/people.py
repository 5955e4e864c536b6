"""The people of a campaign: who they are, how their part is ended or forgotten, a bonus; and who may come: the links by
which people vote, the members who may see a campaign, and its panelists.

Managers see who takes part; only the owner sees how platforms name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from prefmh_web.accounts.models import SignedInRequest
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, EndReason, Invitation, Membership, NotPossible, Voter
from prefmh_web.campaigns.models.people import key_of
from prefmh_web.campaigns.monitoring.judging import panelists_of
from prefmh_web.config import Outcome
from prefmh_web.console.views import common
from prefmh_web.participants import attention, completion, erasure, payments
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.models import Stage
from prefmh_web.participants.people import Person, people_of, person_of

GOING_ON = "going-on"
"""In place of an outcome: there is none yet."""
LONGEST_TEXT = 2000


COLUMNS: dict[str, tuple[str, Callable[[Person], Any]]] = {
    "number": ("Person", lambda person: person.number),
    "stage": ("Stage", lambda person: person.stage and list(Stage).index(person.stage)),
    "outcome": ("Outcome", lambda person: person.outcome and person.outcome.label),
    "arrived": ("Arrived", lambda person: person.voter.joined_at),
    "seen": ("Last seen", lambda person: person.seen_at),
    "votes": ("Votes", lambda person: person.votes),
    "skips": ("Skips", lambda person: person.skips),
    "time": ("Time a vote", lambda person: person.median_ms),
    "first": ("Object 1", lambda person: person.first_percent),
    "passed": ("Checks passed", lambda person: person.checks_passed),
    "failed": ("Checks failed", lambda person: person.checks_failed),
    "fast": ("Fast votes", lambda person: person.fast_votes),
}
"""The columns of the table of people, by the names that they have in addresses: the label, and by what people are
sorted; None comes last."""
_ORDERS = [
    (f"{sign}{name}", f"{label}, {way}")
    for name, (label, _) in COLUMNS.items()
    for sign, way in (("", "lowest first"), ("-", "highest first"))
]


class PeopleForm(forms.Form):
    """Which people are shown, and in what order. It comes with the address, so a page can be kept as a bookmark."""

    number = forms.IntegerField(min_value=1, required=False, label="Number in votes.csv")
    stage = forms.ChoiceField(choices=[("", "all"), *Stage.choices], required=False)
    outcome = forms.ChoiceField(choices=[("", "all"), (GOING_ON, "going on"), *Outcome.choices], required=False)
    sort = forms.ChoiceField(choices=_ORDERS, required=False, label="Order")
    flagged = forms.BooleanField(required=False, label="With fast votes only")

    @property
    def order(self) -> str:
        """What the people are sorted by; with “-” in front the highest come first."""
        return self.cleaned_data.get("sort") or "number"

    def shown(self, people: Iterable[Person]) -> list[Person]:
        """Return those who are asked for, in the order that is asked for; nobody if something else is asked."""
        if not self.is_valid():
            return []
        _, value = COLUMNS[self.order.removeprefix("-")]
        found = [person for person in people if self._is_asked_for(person)]
        empty = [person for person in found if value(person) is None]
        others = [person for person in found if value(person) is not None]
        return sorted(others, key=value, reverse=self.order.startswith("-")) + empty

    def _is_asked_for(self, person: Person) -> bool:
        asked, outcome = self.cleaned_data, person.outcome or GOING_ON
        return (
            asked["number"] in (None, person.number)
            and asked["stage"] in ("", person.stage)
            and asked["outcome"] in ("", outcome)
            and not (asked["flagged"] and not person.fast_votes)
        )

    @property
    def headers(self) -> list[tuple[str, str, str]]:
        """For each column its label, what a click on it sorts by, and how the table is sorted by it now."""
        now = self.order if self.is_valid() else ""
        how = {now: "ascending"} if not now.startswith("-") else {now[1:]: "descending"}
        return [
            (label, f"-{name}" if now == name else name, how.get(name, "none")) for name, (label, _) in COLUMNS.items()
        ]


class ExclusionForm(forms.Form):
    """Why somebody's part is ended, and whether they are paid."""

    reason = forms.ChoiceField(
        choices=[each for each in EndReason.choices if each[0] != EndReason.LINK], label="Reason"
    )
    text = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="The reason in your words",
        help_text="For payments.csv and your colleagues. The export has only the word above.",
    )
    is_paid = forms.ChoiceField(
        choices=[("yes", "yes, in full: they see the code for parts that you end"), ("no", "no: they see no code")],
        widget=forms.RadioSelect,
        label="Are they paid?",
    )
    with_link = forms.BooleanField(
        required=False,
        label="Also close the link that they joined with",
        help_text="Otherwise they can join again from another browser. People who joined with it can go on.",
    )

    def __init__(self, *args, person: Person, **kwargs):
        super().__init__(*args, **kwargs)
        # Who came without a platform has no code of their own; who came with one comes back as the same person.
        del self.fields["with_link" if person.participation else "is_paid"]


class BonusForm(forms.Form):
    """What somebody is paid beside the pay."""

    bonus = forms.DecimalField(
        min_value=0,
        max_digits=8,
        decimal_places=2,
        required=False,
        label="Bonus",
        help_text="An amount for payments.csv, such as 1.50, also after the end. Leave empty for none.",
    )


class ForceForm(forms.Form):
    """Whether those are forgotten, too, who are still to be paid."""

    is_forced = forms.BooleanField(
        required=False,
        label="At once, although somebody is still to be paid",
        help_text="The pay cannot be settled afterwards: they are no longer in payments.csv, and they have no code.",
    )


class ErasureForm(ForceForm):
    """Of what somebody is forgotten.

    Args:
        has_id: they came with an id, with which they may have come to other campaigns, too.
    """

    scope = forms.ChoiceField(
        choices=[
            (Scope.PARTICIPATION.value, "this campaign"),
            (Scope.PARTICIPANT.value, "all your campaigns to which they came with the same id"),
        ],
        initial=Scope.PARTICIPATION.value,
        widget=forms.RadioSelect,
        label="Delete their data of",
    )
    is_sure = forms.BooleanField(label="I have read what goes and what stays. It cannot be undone.")
    field_order = ("scope", "is_forced", "is_sure")

    def __init__(self, *args, has_id: bool, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["is_forced"].label = "At once, although they are still to be paid"
        if not has_id:
            del self.fields["scope"]
            del self.fields["is_forced"]


class MemberForm(forms.Form):
    """Somebody with an account, and what they may do."""

    username = forms.CharField(max_length=150)
    role = forms.ChoiceField(choices=Membership.Role.choices)


_A_PAGE = 100
# Several forms stand on the page of a person.
_END_IDS, _ERASURE_IDS = "end_%s", "forget_%s"


@common.campaign_page(Right.RUN)
def people(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show who takes part, in the order and with the limits of the address."""
    form, everybody = PeopleForm(request.GET, auto_id="show_%s"), people_of(campaign)
    pages = Paginator(form.shown(everybody), _A_PAGE)
    gold = attention.answers_in(campaign)
    shown: dict[str, Any] = {
        "form": form,
        "panel": campaign.has_panel,
        "all": len(everybody),
        "page": pages.get_page(request.GET.get("page")),
        "gold": gold,
        "gold_alike": attention.share_alike(gold),
        # Whoever knows the right answers passes.
        "tells_answers": access.right_in(campaign, request.user) >= Right.OWN
        or campaign.status == Campaign.Status.FINISHED,
        "max_votes_per_minute": campaign.config.study.max_votes_per_minute,
    }
    return common.page(request, campaign, "console/people.html", 200 if form.is_valid() else 400, **shown)


@common.campaign_page(Right.RUN)
def person(request: SignedInRequest, campaign: access.SeenCampaign, voter_number: int) -> HttpResponse:
    """Show one of them."""
    return _shown(request, campaign, _voter(campaign, voter_number))


@common.campaign_action(Right.RUN, "person")
def end(request: SignedInRequest, campaign: access.SeenCampaign, voter_number: int) -> HttpResponse | str:
    """End somebody's part."""
    voter = _voter(campaign, voter_number)
    form = ExclusionForm(request.POST, person=person_of(voter), auto_id=_END_IDS)
    if not form.is_valid():
        return _shown(request, campaign, voter, end=form)
    if form.cleaned_data.get("with_link") and voter.invitation:
        # First: nobody comes back in between.
        access.revoke(voter.invitation)
    reason, text = EndReason(form.cleaned_data["reason"]), form.cleaned_data["text"]
    completion.exclude(voter, request.user, reason, text, is_paid=form.cleaned_data.get("is_paid") == "yes")
    return _ended(request, person_of(voter))


@common.campaign_action(Right.OWN, "person")
def bonus(request: SignedInRequest, campaign: access.SeenCampaign, voter_number: int) -> HttpResponse | str:
    """Store what somebody is paid beside the pay."""
    voter, form = _voter(campaign, voter_number), BonusForm(request.POST)
    if not form.is_valid():
        return _shown(request, campaign, voter, bonus=form)
    payments.set_bonus(voter, form.cleaned_data["bonus"], by=request.user)
    return "Saved."


def _voter(campaign: Campaign, voter_number: int) -> Voter:
    return get_object_or_404(campaign.voters.select_related("invitation"), pk=key_of(campaign, voter_number))


def _shown(request: SignedInRequest, campaign: access.SeenCampaign, voter: Voter, **wrong: forms.Form) -> HttpResponse:
    """Show one person; `wrong` are forms that could not be read, by their names."""
    found = person_of(voter)
    participation, study = found.participation, campaign.config.study
    exclusion = completion.exclusion_of(voter)
    blank = {
        "end": ExclusionForm(person=found, auto_id=_END_IDS),
        "bonus": BonusForm(initial={"bonus": participation and participation.bonus}),
        "erase": ErasureForm(has_id=found.has_id, auto_id=_ERASURE_IDS),
    }
    shown: dict[str, Any] = {
        "person": found,
        "pay": study.paid(participation.outcome, found.votes, participation.pay)
        if participation and participation.outcome
        else None,
        "exclusion": exclusion,
        "exclusion_reason": exclusion and EndReason(exclusion.data["reason"]).label,
        "is_owed": bool(payments.owed(campaign, [voter.pk])),
        "has_code": bool(study.codes.get(Outcome.ENDED)),
        "forms": blank | wrong,
    }
    return common.page(request, campaign, "console/person.html", **shown)


def _ended(request: HttpRequest, ended: Person) -> str:
    """Return that somebody's part is ended; warn of what that does not change."""
    if ended.outcome and ended.outcome is not Outcome.ENDED:
        stays = f"The part of person {ended.number} had ended before: {ended.outcome.label}. That stays, with its pay."
        messages.warning(request, f"{stays} They can vote no more.")
        return ""
    link = Invitation.objects.filter(voters=ended.voter).first()
    if link and link.admits_anybody and ended.participation is None:
        messages.warning(
            request,
            "The link that they used is still open, so they can join again from another browser. You can close it "
            "on the campaign's page “Setup”, under “Links for voters”.",
        )
    return f"The part of person {ended.number} is ended. Their votes are kept."


@common.campaign_action(Right.OWN, "person")
def erase(request: SignedInRequest, campaign: access.SeenCampaign, voter_number: int) -> HttpResponse | str:
    """Forget somebody."""
    voter = _voter(campaign, voter_number)
    form = ErasureForm(request.POST, has_id=person_of(voter).has_id, auto_id=_ERASURE_IDS)
    if not form.is_valid():
        return _shown(request, campaign, voter, erase=form)
    scope = erasure.Scope(form.cleaned_data.get("scope") or erasure.Scope.PARTICIPATION)
    if erasure.erase(voter, scope, is_forced=form.cleaned_data.get("is_forced", False)):
        return f"Nothing says any more who person {voter_number} is. Their votes are kept."
    return f"The part of person {voter_number} is over. Their data are deleted as soon as you say that they are paid."


@common.campaign_action(Right.OWN, "person")
def mark_one_paid(request: SignedInRequest, campaign: Campaign, voter_number: int) -> str:
    """Note that somebody is paid."""
    if not payments.mark_paid(campaign, _voter(campaign, voter_number), by=request.user):
        raise NotPossible("Nothing was noted: their part goes on, or they were noted as paid before.")
    return "Noted as paid."


@common.campaign_action(Right.RUN)
def invite(request: HttpRequest, campaign: Campaign) -> str:
    """Make another link; for one person if the field `single_use` is there."""
    access.invite(campaign, is_single_use="single_use" in request.POST)
    return ""


@common.campaign_action(Right.RUN)
def revoke(request: SignedInRequest, campaign: Campaign, invitation_id: int) -> str:
    """Withdraw a link; with the field `withdraw`, also the access of those who joined by it."""
    invitation = get_object_or_404(campaign.invitations, pk=invitation_id)
    if "withdraw" in request.POST:
        completion.exclude_all(invitation, request.user)
        return "The link is closed. Everyone who joined with it is removed; their votes are kept."
    access.revoke(invitation)
    return "The link is closed. People who joined can go on."


@common.campaign_action(Right.OWN)
def add_member(request: HttpRequest, campaign: Campaign) -> str:
    """Add a member by user name, or change a member's role."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        raise NotPossible("Enter the user name of an existing account and choose a permission.")
    member = access.add_member(campaign, form.cleaned_data["username"], form.cleaned_data["role"])
    return f"{member.user} {member.get_role_display()}."


@common.campaign_action(Right.OWN)
def remove_member(request: HttpRequest, campaign: Campaign, member_id: int) -> str:
    """Remove a member."""
    member = get_object_or_404(campaign.memberships.select_related("user"), pk=member_id)
    access.remove_member(member)
    return f"{member.user} no longer has access to this campaign."


@common.campaign_page(Right.RUN)
def panel(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the panelists of a started campaign. Only the owner sees the names."""
    if campaign.is_draft or not campaign.config.panelists:
        raise Http404("This campaign has no panel, or has not started.")
    return common.page(request, campaign, "console/panel.html", panelists=panelists_of(campaign))


@common.campaign_action(Right.RUN, "panel")
def remind(request: HttpRequest, campaign: Campaign, number: int) -> str:
    """Note that a panelist was reminded."""
    if not campaign.judges.filter(panelist=number).exists():
        raise Http404("There is no such panelist.")
    access.remind(campaign, number)
    return f"Noted: panelist {number} was reminded."
