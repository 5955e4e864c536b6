"""What every campaign has, whatever its objects are."""

import secrets

from django import forms
from django.conf import settings

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config.campaign import LAYOUTS
from prefmh_web.console.forms.changes import CapFields
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.scorers import scorer_choices
from prefmh_web.console.forms.spaces import offered_forms
from prefmh_web.console.forms.unshown import in_order
from prefmh_web.settings.languages import SOURCE

_SEEDS = 2**53
# So that nobody waits in a crowd of a hundred; what counts is how many open.
USUAL_MOST_CHAINS = 100
PARK_AFTER_REPORTS = 2


class CampaignForm(CapFields):
    """Everything about a campaign but its objects and its questions."""

    name = forms.CharField(
        max_length=120,
        label="Name of the campaign",
        help_text="Voters do not see it. Colleagues whom you add to the campaign do.",
    )
    space = forms.ChoiceField(
        widget=forms.RadioSelect,
        label="What is compared?",
        initial="catalog",
    )
    instructions = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        label="Instructions for voters",
        help_text="Shown once, before the first pair.",
    )
    language = forms.ChoiceField(
        choices=settings.LANGUAGES,
        required=False,
        initial=SOURCE,
        label="Language of the voters' pages",
        help_text="Write your questions and instructions in it, too. Translations that no native speaker has reviewed "
        "yet say so.",
    )
    layout = forms.ChoiceField(
        choices=[
            ("", "One above the other if a question is asked in both orders, else by the screen"),
            *LAYOUTS.items(),
        ],
        required=False,
        label="How the two objects stand",
        help_text="A preference for the first object may be another one beside than above. Two orders cancel it only "
        "where all people see one layout.",
    )
    scorer_names = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Scorers",
        help_text="Each gives every object that a chain proposes a number, which the record keeps and the report "
        "follows. They decide nothing, unless the rule goes by scores.",
    )
    chains = forms.IntegerField(
        min_value=1,
        max_value=sampler.MOST_CHAINS,
        initial=4,
        label="Chains at the start",
        help_text="A chain (Markov chain) goes from object to object, as people choose. Several chains start apart and "
        "show whether they come to the same place. All have the same number of steps.",
    )
    max_chains = forms.IntegerField(
        min_value=1,
        max_value=sampler.MOST_CHAINS,
        required=False,
        initial=USUAL_MOST_CHAINS,
        label="Chains at most",
        help_text="A further chain opens whenever somebody would wait, up to this number. Leave it empty for a fixed "
        "number of chains. Where models judge, the number is fixed.",
    )
    steps = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        initial=100,
        label="Steps per chain",
        help_text="A step compares the object where the chain stands with a new one.",
    )
    burn_in = forms.IntegerField(
        min_value=0,
        required=False,
        initial=0,
        label="First steps that are left out",
        help_text="Burn-in: so many first steps of each chain the analysis leaves out, because they still show "
        "where the chain started.",
    )
    lease_seconds = forms.IntegerField(
        min_value=10,
        max_value=3600,
        initial=120,
        label="Time to answer, in seconds",
        help_text="After this time the pair goes to somebody else. Give enough: answers that come too late do not "
        "count.",
    )
    suspend_after_skips = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        label="Set a step aside after so many skips",
        help_text="It is suspended: nobody else is asked about it until you try it again or end its chain. Empty for "
        "never.",
    )
    suspend_after_reports = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        initial=PARK_AFTER_REPORTS,
        label="Set a step aside after so many reports",
        help_text="That an object is not shown, or broken, each by another person.",
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=_SEEDS - 1,
        required=False,
        label="Seed of all random numbers",
        help_text="Leave empty, and the start draws one. Its hash is shown from then on, and nobody sees the seed "
        "until the campaign has ended. Keep a seed that you type secret: it determines all random numbers.",
    )

    is_seed_typed = False
    """True once a seed was sent."""

    def __init__(self, *args, campaign: Campaign | None = None, **kwargs):
        self._campaign = campaign
        if campaign is not None:
            kwargs["initial"] = _fields_of(campaign)
        super().__init__(*args, **kwargs)
        offer(self, "scorer_names", scorer_choices(campaign))
        offer(self, "space", [(kind, form.title) for kind, form in offered_forms(campaign).items()])

    def clean_instructions(self) -> str:
        # Browsers send their own line ends.
        return str(self.cleaned_data["instructions"].replace("\r\n", "\n"))

    def field_at(self, path: str) -> str | None:
        """Return the field of this path in a config; None where there is none."""
        return path if path in self.fields else None

    def clean_burn_in(self) -> int:
        return self.cleaned_data["burn_in"] or 0

    def clean_language(self) -> str:
        return self.cleaned_data["language"] or SOURCE

    def clean_suspend_after_reports(self) -> int:
        return self.cleaned_data["suspend_after_reports"] or PARK_AFTER_REPORTS

    def clean_scorer_names(self) -> str:
        before = "" if self._campaign is None else " ".join(self._campaign.config.scorers)
        return " ".join(in_order(self.cleaned_data["scorer_names"], before))

    def clean_seed(self) -> int:
        seed: int | None = self.cleaned_data["seed"]
        self.is_seed_typed = seed is not None
        if seed is not None:
            return seed
        if self._campaign is not None and not self._campaign.is_seed_typed:
            # Nobody has seen it, so that it can stay.
            return self._campaign.seed
        return secrets.randbelow(_SEEDS)


def _fields_of(campaign: Campaign) -> dict:
    config = campaign.config
    fields = {"name": campaign.name, "cost_cap": campaign.cost_cap, "request_cap": campaign.request_cap}
    fields |= {name: getattr(config, name) for name in ("instructions", "language", "layout")}
    fields |= {"lease_seconds": config.answering.seconds}
    fields |= {name: getattr(config.answering, name) for name in ("suspend_after_skips", "suspend_after_reports")}
    fields |= {name: getattr(config, name) for name in ("chains", "max_chains", "steps")}
    fields |= {"burn_in": config.burn_in, "seed": campaign.seed if campaign.is_seed_typed else None}
    return fields | {"space": config.space.kind, "scorer_names": list(config.scorers)}
