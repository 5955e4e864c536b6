"""All forms of a campaign's setup together: they are checked at once, and make one recipe."""

import sampler
from prefmh_web.accounts.roles import SignedInRequest
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.campaign import CampaignForm
from prefmh_web.console.forms.crowds import crowds_shown
from prefmh_web.console.forms.questions import QuestionFormSet, judges_in, questions_of
from prefmh_web.console.forms.rule import RuleForm
from prefmh_web.console.forms.spaces import SpaceForm, offered_forms
from prefmh_web.console.forms.spaces.walks import with_steps
from prefmh_web.endpoints.models import Endpoint


class SetupForms:
    """The form of the campaign, one for each space of which one is chosen, the rule, and the questions.

    Args:
        request: its fields fill the forms if it is a POST.
        campaign: the draft that is changed, if it is one.
    """

    def __init__(self, request: SignedInRequest, campaign: Campaign | None = None):
        owner = campaign.owner if campaign else request.user
        posted, files = (request.POST, request.FILES) if request.method == "POST" else (None, None)
        self.campaign = CampaignForm(posted, campaign=campaign)
        chosen = self.campaign["space"].value()
        # Of the spaces that were not chosen, the fields keep their initial values: what stands in them is not meant.
        self.spaces = [
            form(*((posted, files) if kind == chosen else ()), campaign=campaign, owner=owner)
            for kind, form in offered_forms(campaign).items()
        ]
        self.rule = RuleForm(posted, campaign=campaign)
        self.questions = QuestionFormSet(
            posted,
            prefix="questions",
            initial=questions_of(campaign) if campaign else None,
            form_kwargs={"endpoints": tuple(Endpoint.objects.filter(owner=owner).values_list("name", flat=True))},
        )

    @property
    def space(self) -> SpaceForm:
        """The form of the space that was chosen."""
        return next(form for form in self.spaces if form.kind == self.campaign["space"].value())

    @property
    def has_errors(self) -> bool:
        """True once something was refused."""
        forms = (self.campaign, self.rule, *self.spaces)
        return any(form.is_bound and form.errors for form in forms) or self.questions.total_error_count() > 0

    @property
    def crowds(self) -> dict[str, object]:
        """What crowds would make of the setup as it stands in the fields."""
        fields = [self.campaign[name] for name in ("chains", "most_chains", "steps", "burn_in")]
        fields += [form[name] for form in self.questions.forms for name in ("budget", "order")]
        return crowds_shown({field.html_name: field.value() for field in fields})

    def checked(self) -> dict | None:
        """Return a campaign's fields; None after adding every reason to the forms where something is refused."""
        if not self.campaign.is_valid():
            # So that the other forms' reasons show at once, too.
            _ = [form.errors for form in self.spaces if form.is_bound], self.rule.errors, self.questions.is_valid()
            return None
        if not all([self.space.is_valid(), self.rule.is_valid(), self.questions.is_valid()]):
            return None
        recipe = self._recipe()
        names = ("name", "instructions", "language", "more_languages", "lease_seconds")
        return recipe and {"recipe": recipe, **{name: self.campaign.cleaned_data[name] for name in names}}

    def _recipe(self) -> dict | None:
        size = {name: self.campaign.cleaned_data[name] for name in ("chains", "steps")}
        described = {
            "version": 2,
            "space": self.space.space(),
            "kernel": with_steps(self.space.kernel(), **size),
            "judges": judges_in(self.questions),
            "rule": self.rule.rule(),
            **size,
            **{name: self.campaign.cleaned_data[name] for name in ("most_chains", "seed", "burn_in")},
        }
        try:
            return sampler.parse_recipe(described).model_dump(mode="json")
        except sampler.RecipeError as error:
            for problem in error.problems:
                if not (self.space.show_problem(problem) or self.rule.show_problem(problem)):
                    field = problem.path if problem.path in self.campaign.fields else None
                    self.campaign.add_error(field, problem.message if field else str(problem))
            return None
