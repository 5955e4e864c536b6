"""A draft as a participant would meet it, for the one who sets it up: its stages, some pairs with their keys, the end.

Nothing of it is stored but where the researcher stands, in the session. Answers about the person are looked at and
forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import translation

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Side
from prefmh_web.campaigns.objects import own_pair
from prefmh_web.config import Outcome, Protocol
from prefmh_web.config.misfits import questions_of
from prefmh_web.console.board import Board
from prefmh_web.console.unstored import asks_people, pair_of, shown_of
from prefmh_web.console.views import common
from prefmh_web.objects.markdown import rendered
from prefmh_web.participants import attention, completion
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages import Page, PracticeForm, answered, next_stage, page_of

_PAIRS = 6
# After so many pairs comes an attention check, where the protocol has such.
_CHECK_AFTER = 2
_OF_PART = ("stage", "outcome", "tries", "practice")


class _Sandbox:
    """One researcher's way through one draft.

    Args:
        campaign: a readable draft in which people are asked.
        kept: what `kept` returned; None at the begin.
    """

    def __init__(self, campaign: access.SeenCampaign, kept: Mapping[str, Any] | None):
        self.campaign, self.study = campaign, campaign.config.study
        knows_people = self.study.platform.knows_people
        self.protocol = self.study.protocol if knows_people else Protocol()
        self.consent = self.study.consent if knows_people else ""
        self.asked: int = kept["asked"] if kept else 0
        self.votes: int = kept["votes"] if kept else 0
        # Never saved.
        self.part = Participation(campaign=campaign, **{name: kept[name] for name in _OF_PART if kept})

    @property
    def kept(self) -> dict[str, Any]:
        """Where the researcher stands: their part, how many pairs they were asked, and how many votes they gave."""
        return {name: getattr(self.part, name) for name in _OF_PART} | {"asked": self.asked, "votes": self.votes}

    @property
    def stage(self) -> Stage:
        """Where they are."""
        return Stage(self.part.stage)

    @property
    def is_check(self) -> bool:
        """True where an attention check comes next."""
        return self.asked == _CHECK_AFTER and bool(self.protocol.check_share)

    def take(self, posted: Mapping[str, str]) -> Page | None:
        """Take what was answered; return the page again where something is refused."""
        page = page_of(self.stage)
        if self.stage == Stage.ARRIVAL:
            self._go_on(Outcome.NO_CONSENT if posted.get("consent") == "refuse" else None)
        elif self.stage == Stage.VOTES:
            self._vote(posted.get("choice", ""))
        elif page and posted.get("stage") == page.name:
            result = answered(self.part, self.protocol, page, posted)
            if isinstance(result, Page):
                return result
            if result.outcome or not result.stays:
                self._go_on(result.outcome)
        return None

    def _go_on(self, outcome: Outcome | None = None) -> None:
        """Leave a stage for the next one, or with an outcome for the end."""
        self.part.stage = Stage.END if outcome else next_stage(self.stage, self.protocol)
        if self.stage == Stage.END:
            self.part.outcome = outcome or Outcome.COMPLETED

    def _vote(self, choice: str) -> None:
        """Take a vote, or a skip, and go on to the next pair or past the last one."""
        is_check = self.is_check
        if choice not in Side.values and (choice != "skip" or is_check):
            return
        self.asked += 1
        if choice == "skip" or is_check:
            return
        self.votes += 1
        if self.votes >= min(_PAIRS, self.study.votes_each or _PAIRS):
            self._go_on()


@common.campaign_page(Right.OWN, method=common.form_page)
def sandbox(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the stage at which the researcher stands, and take the answer. Nothing is written but to the session."""
    if reason := _closed(campaign):
        messages.info(request, reason)
        return redirect(campaign)
    key = f"sandbox-{campaign.pk}"
    walked, refused = _Sandbox(campaign, request.session.get(key)), None
    with translation.override(campaign.config.language):
        if request.method != "POST":
            return _shown(request, walked)
        if "again" in request.POST:
            walked = _Sandbox(campaign, None)
        else:
            refused = walked.take(request.POST)
        request.session[key] = walked.kept
        return _shown(request, walked, refused) if refused else redirect("console:sandbox", campaign.pk)


def _closed(campaign: Campaign) -> str:
    """Return why there is no sandbox; empty where there is one."""
    if not campaign.is_draft:
        return "The sandbox is for drafts: take part with a link of the campaign itself."
    if not asks_people(campaign):
        return "No people are asked in this campaign, so there is nothing to try as one."
    return "" if Board(campaign).is_ready else "The file has not been read, so there are no pairs yet."


def _shown(request: SignedInRequest, walked: _Sandbox, refused: Page | None = None) -> HttpResponse:
    context: dict[str, Any] = {"pairs": _PAIRS, "votes": walked.votes}
    match walked.stage:
        case Stage.ARRIVAL:
            context |= _welcome(walked)
        case Stage.VOTES:
            told = (Side.FIRST, Side.SECOND)[walked.asked % 2]
            context |= pair_of(walked.campaign, walked.asked, str(attention.TOLD[told]) if walked.is_check else "")
            context |= {"shows": "console/_sandbox_pair.html", "is_screen": True, "is_check": walked.is_check}
        case Stage.END:
            context |= {"shows": "console/_sandbox_end.html", "end": _end(walked)}
        case at:
            stage = page_of(at)
            assert stage is not None
            page = refused or Page(stage, stage.form(walked.protocol, walked.part), walked.protocol)
            context |= {"shows": "voting/_stage.html", "page": page}
            if isinstance(page.form, PracticeForm):
                exercise = page.form.exercise
                context |= shown_of(own_pair(exercise.pair, walked.campaign), walked.campaign)
                context |= {"shows": "voting/_practice.html", "is_screen": True, "exercise": exercise}
    return common.page(request, walked.campaign, "console/sandbox.html", **context)


def _welcome(walked: _Sandbox) -> dict[str, object]:
    config, study = walked.campaign.config, walked.study
    return {
        "shows": "voting/_welcome.html",
        "instructions": config.instructions,
        "questions": questions_of(config),
        "votes_each": study.votes_each,
        "minutes_each": study.most_active_minutes,
        "consent": rendered(walked.consent) if walked.consent else "",
    }


def _end(walked: _Sandbox) -> completion.End:
    outcome, study = Outcome(walked.part.outcome), walked.study
    debriefing = walked.protocol.debriefing if outcome in completion.TOOK_PART else ""
    code = study.codes.get(outcome, "")
    return completion.End(outcome, code, "", study.platform.called, debriefing=rendered(debriefing))
