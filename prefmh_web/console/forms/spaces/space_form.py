"""What the form of every space offers: its fields, the config they make, and the fields a config would fill."""

from typing import Any, ClassVar

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.unstored import Sample, Unstored


class SpaceForm(forms.Form):
    """How the objects of a campaign come about and how the chain moves among them.

    Args:
        owner: whose campaign it is or will be.
        campaign: the draft that is changed; its values are shown if it is of this space.
    """

    kind: ClassVar[str]
    """The config's name of the space."""
    title: ClassVar[str]
    """How a researcher chooses it."""
    about: ClassVar[str] = ""
    """One sentence below that."""
    samples: ClassVar[tuple[Sample | Unstored, ...]]
    """The picture of its card: objects like those that it makes."""
    carded: ClassVar[str] = ""
    """The field whose choices are kinds of objects, which are shown as cards as well."""
    main: ClassVar[tuple[str, ...]] = ()
    """The fields that everybody fills in; the others stand folded, as they are mostly left."""
    # Of several spaces on one page only one is chosen, so the browser must not insist; the server does.
    use_required_attribute = False
    field_of: ClassVar[dict[str, str]] = {}
    """Where the config's paths have their place in the form."""

    def __init__(self, *args, owner, campaign: Campaign | None = None, **kwargs):
        self.owner = owner
        self.before = campaign if campaign and campaign.config.space.kind == self.kind else None
        if self.before:
            kwargs["initial"] = self.initial_of(self.before.config)
        self.prefix = self.kind
        super().__init__(*args, **kwargs)

    @classmethod
    def is_offered(cls) -> bool:
        """True where this site has what the space needs."""
        return True

    @property
    def upload(self):
        """The uploaded file that the campaign keeps, if this space has one."""
        return None

    def space(self) -> dict:
        """Return the config's space."""
        raise NotImplementedError

    def kernel(self) -> dict:
        """Return the config's kernel."""
        raise NotImplementedError

    def walked_as_before(self, kernel: dict[str, Any]) -> dict[str, Any]:
        """Return a walk of this kernel where the draft has one that this form has no field for; else the kernel."""
        before: Any = self.before.config.kernel if self.before else None
        if before is None or before.kind != "walk":
            return kernel
        return before.model_dump(mode="json") | {"kernel": kernel}

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        """Return the fields' values that make this config, which is of this space."""
        raise NotImplementedError

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        """Return what starting freezes of this space, in the researcher's words."""
        raise NotImplementedError

    def show_problem(self, problem: sampler.ConfigProblem) -> bool:
        """Show a problem with the config at its field; False if it has none here."""
        path = next((path for path in self.field_of if problem.path == path or problem.path.startswith(f"{path}.")), "")
        if path:
            self.add_error(self.field_of[path], problem.message)
        return bool(path)


def mixture(*parts: tuple[float, dict[str, Any]]) -> dict[str, Any]:
    """Return a mixture of the kernels whose weight is not zero; the kernel itself if only one is left."""
    used: list[dict[str, Any]] = [{"weight": weight, "kernel": kernel} for weight, kernel in parts if weight > 0]
    return used[0]["kernel"] if len(used) == 1 else {"kind": "mixture", "parts": used}


def move_of(config: sampler.ChainConfig) -> Any:
    """Return the kernel of a config; of a walk, the one that walks."""
    kernel: Any = config.kernel
    return kernel.kernel if kernel.kind == "walk" else kernel


def parts_of(config: sampler.ChainConfig) -> list[tuple[float, Any]]:
    """Return the kernels that a move may use, each with its share of the moves."""
    kernel = move_of(config)
    if kernel.kind != "mixture":
        return [(1.0, kernel)]
    return [(part.weight, part.kernel) for part in kernel.parts]


def fresh_share_of(config: sampler.ChainConfig) -> float:
    """Return how often a move draws afresh from p0."""
    return sum(weight for weight, part in parts_of(config) if part.kind == "independent")
