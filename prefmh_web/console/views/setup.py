"""The setup: of a new campaign, a draft, a started one; as a file, copied, and previews of what it comes to.

In the preview a draft is as a participant would meet it: its stages, some pairs with their keys, the end. Nothing of it
is stored but where the researcher stands, in the session. Answers about the person are looked at and forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from itertools import count
from typing import Annotated, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.core.files.base import File
from django.core.signing import BadSignature
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from pydantic import ValidationError, create_model

import sampler
from prefmh_web import config_files, drafts
from prefmh_web.accounts.models import SignedInRequest, is_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Membership, NotPossible, Side
from prefmh_web.campaigns.objects import own_pair
from prefmh_web.config import CampaignConfig, Outcome, Protocol, questions_of
from prefmh_web.config_files import MAX_FILE_BYTES, NAME
from prefmh_web.config_yaml import Problem, SetupError
from prefmh_web.console import lists, preview
from prefmh_web.console.board import Board
from prefmh_web.console.forms.fields import KeptFiles
from prefmh_web.console.forms.setup_form import SetupForm
from prefmh_web.console.preview import asks_people, pair_of, preview_of, shown_of
from prefmh_web.console.views import common
from prefmh_web.console.views.campaigns import ExtensionForm, PilotForm
from prefmh_web.objects import OBJECT_KINDS, StoredObject, media
from prefmh_web.objects.texts import rendered
from prefmh_web.participants import attention, completion
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages import Page, PracticeForm, answered, next_stage, page_of
from prefmh_web.transport.bodies import stream

_TYPES = {".yaml": "application/yaml; charset=utf-8", ".zip": "application/zip"}


class SetupFileForm(forms.Form):
    """One file; `setup.files` says what is wrong with it."""

    file = forms.FileField(
        label="Your file",
        help_text=f"A {NAME} alone, or a ZIP with {NAME} and the list that it names, as “Download the setup” gives it. "
        f"At most {MAX_FILE_BYTES // 2**20} MiB.",
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.zip"}),
    )


_UNJUDGED = ("base", "score", "quest")


_SIZE = ("chains", "max_chains", "steps", "burn_in")
_VOTES = sampler.JudgeConfig.model_fields["votes"]
_of_size: Any = {name: (info.annotation, info) for name in _SIZE for info in [CampaignConfig.model_fields[name]]}
_Size: Any = create_model("_Size", votes=(tuple[Annotated[int, _VOTES], ...], ...), **_of_size)


def estimate_shown(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what one chain, those of the start and all that may open take; None if nobody votes or a field is wrong.

    Args:
        values: the fields of a setup, by the names that they have there.
    """
    votes: list[Any] = []
    for number in count():
        if (typed := values.get(f"judges.{number}.votes")) is None:
            break
        # In both orders a question stands for two judges.
        votes += [typed] * (1 + (values.get(f"judges.{number}.order") == "both"))
    given = {name: values[name] for name in _SIZE if values.get(name) not in (None, "")}
    try:
        size = _Size.model_validate(given | {"votes": votes})
    except ValidationError:
        return None
    if values.get("rule.kind") in _UNJUDGED or not size.votes:
        return None
    most = max(size.max_chains or 0, size.chains)
    one, start, all_of_them = (
        sampler.estimate(chains, size.steps, size.votes, burn_in=size.burn_in) for chains in (1, size.chains, most)
    )
    return {"chains": size.chains, "most": most, "one": one, "start": start, "all": all_of_them}


@common.form_page
@common.for_researchers
def create(request: SignedInRequest) -> HttpResponse:
    """Set up a new campaign."""
    form = form_of(request)
    if form.is_bound and form.is_valid() and form.config:
        campaign = changes.create(owner=request.user, config=form.config, file=form.upload)
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form))


def form_of(request: SignedInRequest, campaign: Campaign | None = None, *, takes_list: bool = True) -> SetupForm:
    """Return the form of a draft, or of a new campaign, with what was sent of it.

    Args:
        takes_list: False where nothing rests on the list, which takes a while to read.
    """
    sent = request.POST.copy() if request.method == "POST" else None
    kept = KeptFiles(request.user.pk, sent or {}, request.FILES)
    taken = lists.take(sent, kept) if takes_list and sent is not None else None
    form = SetupForm(campaign, request.user, sent, None if sent is None else kept.files)
    form.kept, form.taken = kept, taken
    return form


@common.preview_action
@common.for_researchers
def look_at_list(request: SignedInRequest) -> HttpResponse:
    """Show what a list that is pasted or chosen in the form comes to. A good file is kept for the form."""
    form = form_of(request)
    if form.is_adding:
        raise BadRequest("a button for one more row belongs to the form itself")
    form.full_clean()
    if form.taken and form.taken.field == "file":
        form.kept.show_in(form)
    return render(request, "console/_list.html", lists.context_of(form))


@common.get_page
def estimate(request: HttpRequest) -> HttpResponse:
    """Show what the votes come to of the setup that is being typed."""
    return render(request, "console/_votes_estimate.html", {"estimate": estimate_shown(request.GET)})


@common.campaign_page(method=common.form_page, back="campaign")
def edit(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Change the setup of a draft. Of a started campaign: show it, with all that can still change."""
    is_owner = access.right_in(campaign, request.user) >= Right.OWN
    if not campaign.is_draft and request.method != "POST" and not ("all" in request.GET and is_owner):
        return _fixed(request, campaign)
    if not is_owner:
        raise Http404
    form = form_of(request, campaign)
    if form.is_bound and form.is_valid() and form.config:
        changes.apply(campaign, form.config, request.user, form.upload)
        if form.is_fixed:
            messages.info(request, "Saved.")
        return _after_saving(request, campaign, form)
    return render(request, "console/setup.html", _shown(form, campaign))


def _fixed(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the setup of a started campaign, its links and its members."""
    context = common.frame(request, campaign) | {"board": Board(campaign)}
    if context["may_run"]:
        links = campaign.invitations.filter(panelist__isnull=True).annotate(joined=Count("voters"))
        context["links"] = links.order_by("pk")
    if context["may_own"]:
        context |= {
            "members": campaign.memberships.select_related("user").order_by("user__username"),
            "roles": Membership.Role.choices,
            "extension": ExtensionForm(auto_id="extension_%s"),
        }
    return render(request, "console/setup_fixed.html", context)


def _after_saving(request: SignedInRequest, campaign: Campaign, form: SetupForm) -> HttpResponse:
    """Go to the page where a judge is tried, or to that of the people, if that was pressed; else to the campaign's."""
    form.kept.remove()
    if request.POST.get("next") == "participants":
        return redirect("console:participants", campaign.pk)
    judge = form.judge_at(request.POST.get("try", ""))
    return redirect(campaign) if judge is None else redirect("console:try", campaign.pk, judge)


def _shown(form: SetupForm, campaign: Campaign | None = None) -> dict[str, object]:
    """Return what the page of a setup shows. A file that was chosen is kept where something else is refused."""
    if form.is_bound:
        form.kept.show_in(form)
    at = reverse("console:preview", args=[campaign.pk]) if campaign else reverse("console:preview-new")
    values = {name: leaf.bound.value() for name, leaf in form.leaves.items()}
    return {
        "form": form,
        "campaign": campaign,
        "preview_url": at,
        "estimate": estimate_shown(values),
    }


@common.campaign_page(Right.OWN, back="")
def download(request: HttpRequest, campaign: access.SeenCampaign) -> HttpResponse | StreamingHttpResponse:
    """Send campaign.yaml, or the ZIP with it and the uploaded file. It has codes and answers: it is the owner's."""
    ending, pieces = config_files.write(campaign)
    response = stream(lambda: pieces, _TYPES[ending])
    return common.attachment(request, response, f"{common.prefix_of(campaign)}-campaign{ending}")


@common.form_page
@common.for_researchers
def import_setup(request: SignedInRequest) -> HttpResponse:
    """Make a draft from a setup's file; of one that makes none, show every reason."""
    posted = request.method == "POST"
    form = SetupFileForm(*((request.POST, request.FILES) if posted else ()))
    problems: list[Problem] = []
    if posted and form.is_valid():
        try:
            return redirect(_imported(request, form))
        except SetupError as error:
            problems = error.problems
        except NotPossible as reason:
            problems = [Problem(message=str(reason))]
    return render(request, "console/import.html", {"form": form, "problems": problems})


def _imported(request: SignedInRequest, form: SetupFileForm) -> Campaign:
    with config_files.opened(form.cleaned_data["file"].file, owner=request.user) as (setup, uploaded):
        # The draft's page tells of another campaign under its seed, as long as there is one.
        seed_reuse = drafts.warning_of_seed(setup.seed, request.user)
        warnings = [each for each in drafts.warnings(setup, request.user) if each != seed_reuse]
        campaign = drafts.create(setup, request.user, None if uploaded is None else File(uploaded))
    messages.info(request, f"“{campaign.name}” is imported as a draft. Look through it before you start it.")
    for warning in warnings:
        messages.warning(request, warning)
    return campaign


@common.campaign_action(Right.OWN)
@common.for_researchers
def duplicated(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a draft of the same setup."""
    copy = drafts.duplicate(campaign, request.user)
    panel = " Enter the names of its panel in the setup." if copy.config.panelists else ""
    messages.info(request, f"This is a copy of “{campaign.name}”, a draft with a seed of its own.{panel}")
    return redirect(copy)


@common.campaign_action(Right.OWN, "campaign")
@common.for_researchers
def start_afresh(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a copy of a campaign and start it at once; show it as a draft where that cannot be yet."""
    copy = drafts.duplicate(campaign, request.user)
    try:
        lifecycle.request_start(copy)
    except NotPossible as error:
        messages.info(request, f"This is the copy, a draft that has not started yet. {error}")
    return redirect(copy)


@common.campaign_action(Right.OWN)
@common.for_researchers
def run_pilot(request: SignedInRequest, campaign: Campaign) -> HttpResponse:
    """Make a pilot."""
    form = PilotForm(request.POST)
    if not form.is_valid():
        raise NotPossible(f"{form.errors.as_text()} No pilot was made.")
    made = drafts.pilot(campaign, request.user, **form.cleaned_data)
    messages.info(request, f"“{made.name}” is a draft. Start it and send its link to a few people.")
    return redirect(made)


@common.preview_action
def preview_prompt(request: SignedInRequest, campaign_id: int | None = None) -> HttpResponse:
    """Show the exact request of one question, as the fields of the setup stand. Nothing is stored, and nobody asked."""
    campaign = None if campaign_id is None else common.campaign_for(request, campaign_id, Right.OWN)
    if campaign is None and not is_researcher(request.user):
        return render(request, "console/researchers_only.html", status=403)
    form = form_of(request, campaign, takes_list=False)
    shown = preview_of(form.asked_at(request.POST.get("part", "")), form.owner, campaign)
    return render(request, "console/_prompt_preview.html", {"preview": shown})


@common.get_page
def preview_picture(request: HttpRequest, signed: str) -> HttpResponse:
    """Send the picture of an object whose address a page of ours has made."""
    try:
        found = preview.read(signed)
    except BadSignature as error:
        raise Http404("There is no such picture.") from error
    kind = OBJECT_KINDS[found.kind]
    other = StoredObject(found.other) if found.other else None
    return media.response(request, kind, found.stored, other)


_PAIRS = 6
# After so many pairs comes an attention check, where the protocol has such.
_CHECK_AFTER = 2
_OF_PARTICIPATION = ("stage", "outcome", "tries", "practice")


class _Preview:
    """One researcher's way through one draft.

    Args:
        campaign: a readable draft in which people are asked.
        kept: what `kept` returned; None at the begin. A draft that was changed since begins anew.
    """

    def __init__(self, campaign: access.SeenCampaign, kept: Mapping[str, Any] | None):
        self.campaign, self.study = campaign, campaign.config.study
        self.setup = sha256(campaign.config.model_dump_json().encode()).hexdigest()
        kept = kept if kept and kept.get("setup") == self.setup else None
        knows_people = self.study.platform.knows_people
        self.protocol = self.study.protocol if knows_people else Protocol()
        self.consent = self.study.consent if knows_people else ""
        self.asked: int = kept["asked"] if kept else 0
        self.votes: int = kept["votes"] if kept else 0
        # Never saved.
        self.participation = Participation(
            campaign=campaign, **{name: kept[name] for name in _OF_PARTICIPATION if kept}
        )

    @property
    def kept(self) -> dict[str, Any]:
        """Where the researcher stands: their part, how many pairs they were asked, and how many votes they gave."""
        own = {name: getattr(self, name) for name in ("setup", "asked", "votes")}
        return {name: getattr(self.participation, name) for name in _OF_PARTICIPATION} | own

    @property
    def stage(self) -> Stage:
        """Where they are."""
        return Stage(self.participation.stage)

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
            result = answered(self.participation, self.protocol, page, posted)
            if isinstance(result, Page):
                return result
            if result.outcome or not result.stays:
                self._go_on(result.outcome)
        return None

    def _go_on(self, outcome: Outcome | None = None) -> None:
        """Leave a stage for the next one, or with an outcome for the end."""
        self.participation.stage = Stage.END if outcome else next_stage(self.stage, self.protocol)
        if self.stage == Stage.END:
            self.participation.outcome = outcome or Outcome.COMPLETED

    def _vote(self, choice: str) -> None:
        """Take a vote, or a skip, and go on to the next pair or past the last one."""
        is_check = self.is_check
        if choice not in Side.values and (choice != "skip" or is_check):
            return
        self.asked += 1
        if choice == "skip" or is_check:
            return
        self.votes += 1
        if self.votes >= min(_PAIRS, self.study.votes_per_person or _PAIRS):
            self._go_on()


@common.campaign_page(Right.OWN, method=common.form_page)
def participant_preview(request: SignedInRequest, campaign: access.SeenCampaign) -> HttpResponse:
    """Show the stage at which the researcher stands, and take the answer. Nothing is written but to the session."""
    if reason := _closed(campaign):
        messages.info(request, reason)
        return redirect(campaign)
    key = f"participant-preview-{campaign.pk}"
    walked, refused = _Preview(campaign, request.session.get(key)), None
    with translation.override(campaign.config.language):
        if request.method != "POST":
            return _stage_shown(request, walked)
        if "again" in request.POST:
            walked = _Preview(campaign, None)
        else:
            refused = walked.take(request.POST)
        request.session[key] = walked.kept
        return (
            _stage_shown(request, walked, refused) if refused else redirect("console:participant-preview", campaign.pk)
        )


def _closed(campaign: Campaign) -> str:
    """Return why there is no preview; empty where there is one."""
    if not campaign.is_draft:
        return "This preview is for drafts: take part with a link of the campaign itself."
    if not asks_people(campaign):
        return "No people are asked in this campaign, so there is nothing to try as one."
    return "" if Board(campaign).is_ready else "The file has not been read, so there are no pairs yet."


def _stage_shown(request: SignedInRequest, walked: _Preview, refused: Page | None = None) -> HttpResponse:
    context: dict[str, Any] = {"pairs": _PAIRS, "votes": walked.votes}
    match walked.stage:
        case Stage.ARRIVAL:
            context |= _welcome(walked)
        case Stage.VOTES:
            told = (Side.FIRST, Side.SECOND)[walked.asked % 2]
            context |= pair_of(walked.campaign, walked.asked, str(attention.TOLD[told]) if walked.is_check else "")
            context |= {"shows": "console/_preview_pair.html", "is_screen": True, "is_check": walked.is_check}
        case Stage.END:
            context |= {"shows": "console/_preview_end.html", "end": _end(walked)}
        case at:
            stage = page_of(at)
            assert stage is not None
            page = refused or Page(stage, stage.form(walked.protocol, walked.participation), walked.protocol)
            context |= {"shows": "voting/_stage.html", "page": page}
            if isinstance(page.form, PracticeForm):
                exercise = page.form.exercise
                context |= shown_of(own_pair(exercise.pair, walked.campaign), walked.campaign)
                context |= {"shows": "voting/_practice.html", "is_screen": True, "exercise": exercise}
    return common.page(request, walked.campaign, "console/participant_preview.html", **context)


def _welcome(walked: _Preview) -> dict[str, object]:
    config, study = walked.campaign.config, walked.study
    return {
        "shows": "voting/_welcome.html",
        "instructions": config.instructions,
        "questions": questions_of(config),
        "votes_per_person": study.votes_per_person,
        "minutes_per_person": study.max_active_minutes,
        "consent": rendered(walked.consent) if walked.consent else "",
    }


def _end(walked: _Preview) -> completion.End:
    outcome, study = Outcome(walked.participation.outcome), walked.study
    debriefing = walked.protocol.debriefing if outcome in completion.TOOK_PART else ""
    code = study.codes.get(outcome, "")
    return completion.End(outcome, code, "", study.platform.called, debriefing=rendered(debriefing))
