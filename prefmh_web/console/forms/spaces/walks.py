"""How far apart two compared objects are: fields of every space whose moves are small and quick."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign

WARM_UP, FIXED = "warm-up", "fixed"
_DISTANCES = {
    WARM_UP: "A warm-up finds it",
    FIXED: "A fixed number of moves",
}
_NAMES = ("distance", "walk", "warm_up")


class WalkFields(forms.Form):
    """The fields, for a `SpaceForm`. Where nothing of them is posted, there is one move between two pairs."""

    before: Campaign | None

    votes_saved: ClassVar[str]
    """What walks save on the benchmark's objects of this space."""
    walk_field_of: ClassVar = {
        "kernel.length": "walk",
        "kernel.warm_up.steps": "warm_up",
        "kernel.warm_up.settling": "warm_up",
        "kernel.warm_up": "distance",
    }

    distance = forms.ChoiceField(
        choices=_DISTANCES,
        widget=forms.RadioSelect,
        initial=WARM_UP,
        required=False,
        label="How far apart should two compared objects be?",
    )
    walk = forms.IntegerField(
        min_value=1,
        max_value=sampler.LONGEST_WALK,
        initial=16,
        required=False,
        label="Moves between two pairs",
        help_text="With a warm-up, this number is used only if the campaign is too short for one, or if you end it "
        "early.",
    )
    warm_up = forms.IntegerField(
        min_value=1,
        required=False,
        label="Steps of the warm-up, per chain",
        help_text="Leave empty for about 300 votes in all, at most a quarter of the steps. If that is fewer than 150 "
        "votes, there is no warm-up. At its end, chains wait for each other once.",
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.order_fields([name for name in self.fields if name not in _NAMES] + list(_NAMES))
        self.fields["distance"].help_text = (
            f"{self.votes_saved} In the first steps, a warm-up tries pairs that are 1 to {sampler.DEFAULT_GRID[-1]} "
            "moves apart; then the campaign keeps the distance at which votes move the chains furthest. The result "
            "stays exact."
        )

    def demand_walkable(self, is_walkable: bool, why: str) -> None:
        """Refuse a warm-up, with the reason, where the kernel cannot walk."""
        if not is_walkable and self.cleaned_data.get("distance") == WARM_UP:
            self.add_error("distance", f"{why} Choose a fixed number of moves, and make it 1.")

    def walked(self, kernel: dict[str, Any], objects: str) -> dict[str, Any]:
        """Return a walk of this kernel as the fields say; the kernel itself for one move between two pairs.

        Args:
            objects: what is compared, a name of `sampler.OBJECT_KINDS`.
        """
        data = self.cleaned_data
        length = data["walk"]
        if data["distance"] != WARM_UP:
            return kernel if length in (None, 1) else {"kind": "walk", "kernel": kernel, "length": length}
        warm_up = self._warm_up_before(objects) | {"steps": data["warm_up"]}
        return {"kind": "walk", "kernel": kernel, "length": length or self._middle, "warm_up": warm_up}

    def _warm_up_before(self, objects: str) -> dict[str, Any]:
        """Return what the form has no field for: as the draft has it, or of a new warm-up."""
        before = self.before.config if self.before else None
        if before and before.warm_up and before.space.objects == objects:
            return before.warm_up.model_dump(mode="json")
        return {"properties": sampler.MAIN_PROPERTIES[objects]}

    @property
    def _middle(self) -> int:
        return sampler.DEFAULT_GRID[len(sampler.DEFAULT_GRID) // 2]


def with_steps(kernel: dict[str, Any], chains: int, steps: int) -> dict[str, Any]:
    """Return a kernel whose warm-up, if it has one, has as many steps as fit the chains where nobody has said so."""
    warm_up = kernel.get("warm_up")
    if not warm_up:
        return kernel
    fitting = warm_up["steps"] or sampler.warm_up_steps(chains, steps)
    settling = min(warm_up.get("settling", sampler.DEFAULT_SETTLING), steps // 10)
    if fitting:
        return kernel | {"warm_up": warm_up | {"steps": fitting, "settling": settling}}
    # Too short for a warm-up: the walks have the length of the setup from the first step on.
    return {name: kernel[name] for name in ("kind", "kernel", "length")} if kernel["length"] > 1 else kernel["kernel"]


def walk_fields_of(config: sampler.ChainConfig) -> dict[str, Any]:
    """Return the values that make a config's walk: of a law of lengths, the largest."""
    kernel: Any = config.kernel
    length = max(each.length for each in kernel.length) if kernel.kind == "walk" else 1
    if config.warm_up is None:
        return {"distance": FIXED, "walk": length, "warm_up": None}
    # What nobody has typed follows the chains and steps when they are changed.
    is_usual = config.warm_up.steps == sampler.warm_up_steps(config.chains, config.steps)
    steps = None if is_usual else config.warm_up.steps
    return {"distance": WARM_UP, "walk": length, "warm_up": steps}


def walk_line(config: sampler.ChainConfig) -> tuple[str, str]:
    """Return how far a config walks, in the researcher's words."""
    kernel: Any = config.kernel
    name = "Moves between two pairs"
    if (warm_up := config.warm_up) is not None:
        tried = ", ".join(map(str, warm_up.grid[:-1]))
        return name, (
            f"{tried} or {warm_up.grid[-1]} in the first {warm_up.steps} steps of each chain; then one of them, chosen "
            f"by the votes. {warm_up.settling} further steps are left out of the analysis."
        )
    lengths = kernel.length if kernel.kind == "walk" else ()
    if len(lengths) > 1:
        return name, "; ".join(f"{each.length} in {each.weight:.0%} of the steps" for each in lengths)
    return name, str(walk_fields_of(config)["walk"])
