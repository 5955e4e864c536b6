"""A draft as a participant would meet it, for the one who sets it up."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation

from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Catalog, Side
from prefmh_web.campaigns.objects import contexts_by_content
from prefmh_web.config import Outcome
from prefmh_web.config.misfits import questions_of
from prefmh_web.console.sandbox import PAIRS, Sandbox, SandboxPair, asks_people, begin, shown
from prefmh_web.console.unstored import Unstored
from prefmh_web.console.views.common import campaign_for, form_page
from prefmh_web.participants import attention, completion
from prefmh_web.participants.markdown import rendered
from prefmh_web.participants.models import Stage
from prefmh_web.participants.options import options_of
from prefmh_web.participants.stages import Exercise, Page, PracticeForm, page_of
from sampler.judges import shared_context


@form_page
def sandbox(request: SignedInRequest, campaign_id: int) -> HttpResponse:
    """Show the stage at which the researcher stands, and take the answer. Nothing is written but to the session."""
    campaign = campaign_for(request, campaign_id, Right.OWN)
    if reason := _closed(campaign):
        messages.info(request, reason)
        return redirect(campaign)
    key = f"sandbox-{campaign.pk}"
    walked = Sandbox(campaign, request.session.get(key) or begin())
    with translation.override(campaign.config.language):
        if request.method != "POST":
            return _shown(request, walked)
        if "again" in request.POST:
            walked = Sandbox(campaign, begin())
            refused = None
        else:
            refused = _answer(walked, request.POST)
        request.session[key] = walked.standing
        return _shown(request, walked, refused) if refused else redirect("console:sandbox", campaign.pk)


def _closed(campaign: Campaign) -> str:
    """Return why there is no sandbox; empty where there is one."""
    if not campaign.is_draft:
        return "The sandbox is for drafts: take part with a link of the campaign itself."
    if not asks_people(campaign):
        return "No people are asked in this campaign, so there is nothing to try as one."
    if not campaign.config.generates:
        catalog = Catalog.objects.filter(campaign=campaign).first()
        if catalog is None or catalog.status != Catalog.Status.READY:
            return "The file has not been read, so there are no pairs yet."
    return ""


def _answer(walked: Sandbox, posted: Any) -> Page | None:
    """Take what was answered; return the page again where something is refused."""
    match walked.stage:
        case Stage.ARRIVAL if posted.get("consent") == "refuse":
            walked.end(Outcome.NO_CONSENT)
        case Stage.ARRIVAL:
            walked.go_on()
        case Stage.PRACTICE:
            walked.practise(posted)
        case Stage.VOTES:
            walked.vote(posted.get("choice", ""))
        case Stage.END:
            pass
        case _:
            return _answer_stage(walked, posted)
    return None


def _answer_stage(walked: Sandbox, posted: Any) -> Page | None:
    stage, protocol = page_of(walked.stage), walked.protocol
    if stage is None or posted.get("stage") != stage.name:
        return None
    form = stage.form(protocol, walked.part, posted)
    if not form.is_valid():
        return Page(stage, form, protocol)
    data = form.cleaned_data
    if walked.stage == Stage.COMPREHENSION:
        given = [data[f"check_{number}"] for number in range(len(protocol.comprehension))]
        if given != [check.right for check in protocol.comprehension]:
            walked.standing["tries"] += 1
            if walked.standing["tries"] >= protocol.tries:
                walked.end(Outcome.NOT_UNDERSTOOD)
            return None
    gates = [each for each in protocol.questions if each.is_gate and each.name in data]
    if all(gate.admits(str(data[gate.name])) for gate in gates):
        walked.go_on()
    else:
        walked.end(Outcome.NOT_ELIGIBLE)
    return None


def _shown(request: SignedInRequest, walked: Sandbox, refused: Page | None = None) -> HttpResponse:
    context = {"campaign": walked.campaign, "pairs": PAIRS, "kind": walked.campaign.object_kind}
    context |= walked.config.shown_as
    match walked.stage:
        case Stage.ARRIVAL:
            context |= _welcome(walked)
        case Stage.PRACTICE:
            context |= _practice(walked)
        case Stage.VOTES:
            context |= _pair(walked)
        case Stage.END:
            context |= _end(walked)
        case at:
            stage = page_of(at)
            if stage is not None and refused is None:
                refused = Page(stage, stage.form(walked.protocol, walked.part), walked.protocol)
            context |= {"shows": "annotate/_stage.html", "page": refused}
    return render(request, "console/sandbox.html", context)


def _welcome(walked: Sandbox) -> dict[str, object]:
    campaign, study = walked.campaign, walked.study
    return {
        "shows": "annotate/_welcome.html",
        "instructions": campaign.config.instructions,
        "questions": questions_of(walked.config),
        "votes_each": study.votes_each,
        "minutes_each": study.most_active_minutes,
        "consent": rendered(walked.consent) if walked.consent else "",
    }


def _practice(walked: Sandbox) -> dict[str, object]:
    campaign, standing, practice = walked.campaign, walked.standing, walked.protocol.practice
    chosen = Side(standing["chosen"]) if standing["chosen"] else None
    pair = practice[standing["number"]]
    exercise = Exercise(pair, standing["number"], len(practice), chosen)
    kind = campaign.object_kind
    first, second = contexts_by_content(campaign, walked.config, pair.first, pair.second)
    around = shared_context(first, second)
    sides = {
        Side.FIRST: Unstored(kind.name, pair.first, "", pair.second),
        Side.SECOND: Unstored(kind.name, pair.second, "", pair.first),
    }
    return {
        "shows": "annotate/_practice.html",
        "is_screen": True,
        "exercise": exercise,
        "page": Page(page_of(Stage.PRACTICE), PracticeForm(exercise), walked.protocol),  # type: ignore[arg-type]  # it is a page
        "question": attention.question_of(pair, walked.config),
        "options": options_of(kind, pair.first, pair.second, lambda side: sides[side].address, around),
        "context": around.shared,
    }


def _pair(walked: Sandbox) -> dict[str, object]:
    pair: SandboxPair = walked.pair()
    on_screen = shown(pair, walked.campaign.object_kind)
    return {
        "shows": "console/_sandbox_pair.html",
        "is_screen": True,
        "pair": pair,
        "options": on_screen.options,
        "context": on_screen.context,
        "votes": walked.standing["votes"],
    }


def _end(walked: Sandbox) -> dict[str, object]:
    outcome, study = Outcome(walked.standing["outcome"]), walked.study
    debriefing = walked.protocol.debriefing if outcome in completion.TOOK_PART else ""
    code = study.codes.get(outcome, "")
    end = completion.End(outcome, code, "", study.platform.called, debriefing=rendered(debriefing))
    return {"shows": "console/_sandbox_end.html", "end": end, "votes": walked.standing["votes"]}
