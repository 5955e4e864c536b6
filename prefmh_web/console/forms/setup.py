"""All forms of a campaign's setup together: they are checked at once, and make one config."""

import re

from pydantic import ValidationError

import sampler
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig, Study, UploadedFile
from prefmh_web.console.forms.campaign import USUAL_MOST_CHAINS, CampaignForm
from prefmh_web.console.forms.estimate import estimate_shown
from prefmh_web.console.forms.kept_files import KeptFiles
from prefmh_web.console.forms.panel import PanelForm
from prefmh_web.console.forms.questions import QuestionFormSet, judges_in, questions_of
from prefmh_web.console.forms.rule import RuleForm
from prefmh_web.console.forms.scorers import misfit
from prefmh_web.console.forms.spaces import SpaceForm, offered_forms
from prefmh_web.console.forms.spaces.walks import with_steps
from prefmh_web.console.forms.unshown import judges_of, kernel_of, rule_of, space_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.setup.fitting import chat_servers

# Where a config has the words in which a model is asked.
_PROMPT = re.compile(r"judges\.(\d+)\.source\.prompt\.(\w+)")

# Where the parts of a setup have their place in the form of the campaign.
_FIELD_OF = {"scorers": "scorer_names", "caps": "cost_cap", "answering": "lease_seconds"}


class SetupForms:
    """The form of the campaign, one for each space of which one is chosen, the rule, who answers, and the questions.

    Args:
        request: its fields fill the forms if it is a POST.
        campaign: the draft that is changed, if it is one.
    """

    def __init__(self, request: SignedInRequest, campaign: Campaign | None = None):
        self.owner = owner = campaign.owner if campaign else request.user
        self._before = campaign
        posted = request.POST if request.method == "POST" else None
        self.kept = KeptFiles(request.user.pk, posted or {}, request.FILES)
        files = None if posted is None else self.kept.files
        self.campaign = CampaignForm(posted, campaign=campaign)
        chosen = self.campaign["space"].value()
        # Of the spaces that were not chosen, the fields keep their initial values: what stands in them is not meant.
        self.spaces = [
            form(*((posted, files) if kind == chosen else ()), campaign=campaign, owner=owner)
            for kind, form in offered_forms(campaign).items()
        ]
        self.rule = RuleForm(posted, campaign=campaign)
        # Where nobody is asked, what stands in the fields of the questions is not meant.
        asked = posted if self.rule.asks_judges else None
        self.panel = PanelForm(asked, campaign=campaign)
        self.questions = QuestionFormSet(
            asked,
            prefix="questions",
            initial=questions_of(campaign) if campaign else None,
            form_kwargs={
                "endpoints": tuple(Endpoint.objects.filter(owner=owner).values_list("name", flat=True)),
            },
        )

    @property
    def space(self) -> SpaceForm:
        """The form of the space that was chosen."""
        return next(form for form in self.spaces if form.kind == self.campaign["space"].value())

    @property
    def has_errors(self) -> bool:
        """True once something was refused."""
        forms = (self.campaign, self.rule, self.panel, *self.spaces)
        return any(form.is_bound and form.errors for form in forms) or self.questions.total_error_count() > 0

    def keep_files(self) -> None:
        """Keep what was chosen in forms that are shown again because something is refused."""
        for form in self.spaces:
            if form.is_bound:
                self.kept.show_in(form)

    @property
    def estimate(self) -> dict[str, object] | None:
        """What the votes come to of the setup as it stands in the fields."""
        fields = [self.campaign[name] for name in ("chains", "max_chains", "steps", "burn_in")]
        fields += [form[name] for form in self.questions.forms for name in ("budget", "order")]
        fields.append(self.rule["kind"])
        return estimate_shown({field.html_name: field.value() for field in fields})

    def judge_at(self, prefix: str, campaign: Campaign) -> int | None:
        """Return the place in a saved draft's config of the model that answers one of the questions.

        Args:
            prefix: of the question's form; of no form, there is no place.
        """
        form = next((each for each in self.questions.forms if each.prefix == prefix), None)
        if form is None or not form.cleaned_data:
            return None
        asked = form.judges()[0]
        for place, judge in enumerate(campaign.config.judges):
            is_it = (judge.question, judge.order) == (asked["question"], asked["order"])
            if is_it and isinstance(judge.source, sampler.ModelSource):
                return place
        return None

    def checked(self) -> CampaignConfig | None:
        """Return the configuration; None after adding every reason to the forms where something is refused."""
        if not self.campaign.is_valid():
            # So that the other forms' reasons show at once, too.
            _ = [form.errors for form in self.spaces if form.is_bound], self.rule.errors, self.questions.is_valid()
            _ = self.panel.errors
            return None
        are_valid = [self.space.is_valid(), self.rule.is_valid(), self._are_judges_valid()]
        if not all(are_valid) or (
            self.rule.asks_judges and not (self.panel.fits(self.questions) and self._completions_fit())
        ):
            return None
        config = self._config()
        if config is None or not self._scorers_fit(config):
            return None
        if (setup := self._setup(config)) is None:
            return None
        return setup

    def _setup(self, config: sampler.ChainConfig) -> CampaignConfig | None:
        """Return what the forms say as the setup that a file describes; None after adding every reason to a form."""
        data = self.campaign.cleaned_data
        described = {
            **config.model_dump(mode="json", exclude={"target"}),
            "file": self._file(config),
            "study": self._before.config.study if self._before else Study(),
            **{name: data[name] for name in ("name", "instructions")},
            "language": data["language"],
            "layout": data["layout"] or None,
            "seed": config.seed if self.campaign.is_seed_typed else None,
            "scorers": data["scorer_names"].split(),
            "answering": {"seconds": data["lease_seconds"]}
            | {name: data[name] for name in ("suspend_after_skips", "suspend_after_reports")},
            "caps": {"cost": data["cost_cap"], "requests": data["request_cap"]},
        }
        try:
            return CampaignConfig.model_validate(described)
        except ValidationError as error:
            for problem in sampler.problems_in(error, described):
                field = _FIELD_OF.get(problem.path.split(".")[0], problem.path)
                is_shown = field in self.campaign.fields
                self.campaign.add_error(field if is_shown else None, problem.message if is_shown else str(problem))
            return None

    def _file(self, config: sampler.ChainConfig) -> UploadedFile | None:
        if config.generates:
            return None
        file = self.space.upload
        return UploadedFile(name=file.name) if file else self._before.config.file if self._before else None

    def _are_judges_valid(self) -> bool:
        are_valid = [self.panel.is_valid(), self.questions.is_valid()] if self.rule.asks_judges else []
        return all(are_valid)

    def _scorers_fit(self, parsed: sampler.ChainConfig) -> bool:
        problem = misfit(self.campaign.cleaned_data["scorer_names"], parsed.space.objects)
        if problem:
            self.campaign.add_error("scorer_names", problem)
        if reason := misfit(" ".join(parsed.rule.scorers), parsed.space.objects):
            self.rule.add_error("kind", reason)
        return not (problem or reason)

    def _completions_fit(self) -> bool:
        """Say whether each server that is to complete a prompt can, as far as is known before Start tests it."""
        chats = chat_servers(self.owner)
        for form in self.questions.forms:
            data = form.cleaned_data
            if data.get("prompt_completion") and (label := chats.get(data.get("source", ""))):
                message = (
                    f"“{data['source']}” is of the kind {label}, which takes chats only. Untick this, or "
                    "choose a model behind vLLM, llama.cpp, SGLang or TGI; if it is one of these, test the endpoint."
                )
                form.add_error("prompt_completion", message)
        return self.questions.total_error_count() == 0

    def _show_prompt_problem(self, problem: sampler.ConfigProblem, judges: list[dict]) -> bool:
        """Show a problem with a prompt at the question whose it is; False if it is another problem."""
        found = _PROMPT.fullmatch(problem.path)
        if found is None:
            return False
        judge, field = judges[int(found[1])], found[2]
        for form in self.questions.forms:
            if form.cleaned_data and form.cleaned_data["question"] == judge["question"]:
                own = form.own_words().get("prompt")
                if own == judge["source"].get("prompt") and problem.message not in form.errors.get(
                    f"prompt_{field}", ()
                ):
                    form.show_problem(field, problem.message)
        return True

    def _most_chains(self, judges: list[dict]) -> int | None:
        """Return the field's number; None where it is the usual one, which nobody has typed, and does not fit."""
        most, chains = (self.campaign.cleaned_data[name] for name in ("max_chains", "chains"))
        asks_people = bool(judges) and all(judge["source"]["kind"] == "people" for judge in judges)
        does_fit = most is None or (chains < most and asks_people)
        return None if most == USUAL_MOST_CHAINS and not does_fit else most

    def _judges(self) -> list[dict]:
        if not self.rule.asks_judges:
            return []
        kept = judges_of(self.questions, self.panel.panelists, self._before)
        return self.panel.with_panelists(judges_in(self.questions)) if kept is None else kept

    def _config(self) -> sampler.ChainConfig | None:
        size = {name: self.campaign.cleaned_data[name] for name in ("chains", "steps")}
        judges = self._judges()
        described = {
            "version": 1,
            "space": space_of(self.space),
            "kernel": kernel_of(self.space, self.campaign) or with_steps(self.space.kernel(), **size),
            "judges": judges,
            "rule": rule_of(self.rule, self._before) or self.rule.rule(),
            **size,
            "max_chains": self._most_chains(judges),
            **{name: self.campaign.cleaned_data[name] for name in ("seed", "burn_in")},
        }
        try:
            return sampler.parse_config(described)
        except sampler.ConfigError as error:
            for problem in error.problems:
                if self._show_prompt_problem(problem, judges):
                    continue
                if not (self.space.show_problem(problem) or self.rule.show_problem(problem)):
                    field = self.campaign.field_at(problem.path)
                    self.campaign.add_error(field, problem.message if field else str(problem))
            return None
