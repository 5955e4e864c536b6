"""The recipe: everything that fixes a campaign, checked before anything runs.

A recipe is plain JSON. `parse_recipe` refuses a bad one with every field's path and what would be accepted;
`Recipe.build` returns the plan the chain follows, joined with the catalog if the recipe speaks of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer
from pydantic_core import ErrorDetails

from sampler.chain import Plan
from sampler.judges.panels import seats_of
from sampler.judges.recipe import JudgeRecipe
from sampler.kernels import (
    MOVES_IN,
    Chosen,
    ComponentRecipe,
    KernelRecipe,
    Neighbours,
    WalkRecipe,
    WarmUp,
    components_of,
)
from sampler.kernels.surrogates import Surrogate, features_of, has_features
from sampler.objects.properties import property_names
from sampler.rules.recipe import NVoteRecipe, RuleRecipe
from sampler.rules.targets import target_law
from sampler.spaces import Generated, SpaceRecipe
from sampler.spaces.catalog import Catalog, CatalogRecipe
from sampler.spaces.texts.language_model import LanguageModel
from sampler.spaces.texts.served import ServedTextsRecipe
from sampler.streams import Purpose, stream

VERSION: Final = 2
# Of the program that reads recipes of version 1, and the records that they are part of.
_FIRST_PROGRAM: Final = "0.1.0"
_TILTS_KEPT = 10_000


@dataclass(frozen=True)
class RecipeProblem:
    """One thing wrong with a recipe: where in its JSON (a path such as judges.0.budget) and what would be accepted."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class RecipeError(ValueError):
    """A recipe that cannot be run; `problems` lists every reason."""

    def __init__(self, problems: list[RecipeProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class Recipe(BaseModel):
    """Space, kernel, judges, rule, chains, steps and seed.

    With `most_chains` the campaign starts with `chains` and opens further ones while people would wait, up to so many.
    `burn_in` is how many of the first steps are left out of the samples to analyse. `target` says in plain text which
    law the chains sample (`sampler.rules.targets`), for whoever reads the record; it follows from the rest, and where
    it is given it must be right.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[2] = VERSION
    space: SpaceRecipe
    kernel: KernelRecipe
    judges: tuple[JudgeRecipe, ...] = Field(min_length=1, max_length=8)
    rule: RuleRecipe = NVoteRecipe()
    chains: int = Field(ge=1, le=1000)
    most_chains: int | None = Field(default=None, ge=1, le=1000)
    steps: int = Field(ge=1, le=1_000_000)
    # Up to 2^53 - 1, so that the number survives JSON readers and spreadsheets that keep doubles.
    seed: int = Field(ge=0, lt=2**53)
    burn_in: int = Field(default=0, ge=0)
    target: str | None = None

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        absent = {name for name in ("most_chains", "burn_in", "target") if not fields[name]}
        return {name: value for name, value in fields.items() if name not in absent}

    @property
    def law(self) -> str:
        """The law that the chains sample, in plain text."""
        return target_law(self.judges, self.rule, self.components)

    @property
    def generates(self) -> bool:
        """True when the chains make their objects as they go; False when they pick from a catalog."""
        return not isinstance(self.space, CatalogRecipe)

    @property
    def components(self) -> tuple[ComponentRecipe, ...]:
        """The parts of a mixture or of a walk, or the kernel alone."""
        return components_of(self.kernel)

    @property
    def warm_up(self) -> WarmUp | None:
        """The first steps that choose how far the others walk, if there are such."""
        return self.kernel.warm_up if isinstance(self.kernel, WalkRecipe) else None

    @property
    def has_parts(self) -> bool:
        """True where a record says of some steps which part of the kernel proposed: see `part_of`."""
        return isinstance(self.kernel, WalkRecipe) and self.kernel.has_parts

    def part_of(self, chain: int, step: int, chosen: Chosen | None = None) -> int | None:
        """Return which of several lengths a step walks, by its place in the recipe; None where there are no parts.

        After a warm-up that has fitted scores (`chosen`), which of them pulls the walk: 0 for none. It is drawn before
        anything else of the step, so neither the state nor the model is needed.
        """
        if not isinstance(self.kernel, WalkRecipe) or not self.kernel.has_parts:
            return None
        return self.kernel.part(stream(self.seed, chain, step, Purpose.PROPOSAL), step, chosen)

    @property
    def has_tilts(self) -> bool:
        """True where scores that are fitted in a warm-up may pull walks: a record then holds the tilts."""
        return self.warm_up is not None and self.warm_up.learned is not None

    @property
    def has_phases(self) -> bool:
        """True where not every sample is one to analyse: see `phase_of`."""
        return self.burn_in > 0 or self.warm_up is not None

    def phase_of(self, step: int) -> str:
        """Return what the state after a step is to an analysis.

        "burn-in" and "settling" are left out of it; "warm-up" and "sampling" are not.
        """
        if self.burn_in and step <= self.burn_in:
            return "burn-in"
        if self.warm_up is None or step > self.warm_up.steps + self.warm_up.settling:
            return "sampling"
        return "warm-up" if step <= self.warm_up.steps else "settling"

    @property
    def is_elastic(self) -> bool:
        """True where chains open while the campaign runs, when somebody would wait."""
        return self.most_chains is not None

    @property
    def chains_at_most(self) -> int:
        """How many chains there can be. The numbers of states are spaced by it: see `record/state_index.py`."""
        return self.chains if self.most_chains is None else self.most_chains

    @property
    def seats(self) -> int:
        """How many named people judge, each for themselves; 0 where a crowd does, or models alone."""
        return seats_of(self.judges)

    @property
    def moves(self) -> frozenset[str]:
        """The kinds of the kernel, or of a mixture's or a walk's parts."""
        return frozenset(part.kind for part in self.components)

    @property
    def budgets(self) -> tuple[int, ...]:
        """N_i of each judge, in order."""
        return tuple(judge.budget for judge in self.judges)

    def build(
        self,
        catalog: Catalog | None = None,
        model: LanguageModel | None = None,
        chosen: Chosen | None = None,
        contents: Sequence[str] = (),
    ) -> Plan[Any]:
        """Return the plan of this recipe; states are places in the catalog, or what the space generates.

        Args:
            catalog: the objects, for a recipe whose space is a catalog.
            model: what writes, for a recipe whose space names a model.
            chosen: by a warm-up, if it has.
            contents: of a catalog's objects, where scores may pull the walks.

        Raises:
            RecipeError: the catalog does not fit the kernel.
            TypeError: there is a catalog or a model and no use for it, or the other way round.
        """
        return self.plan_on(self._space(catalog, model), chosen, contents)

    def plan_on(self, space: Any, chosen: Chosen | None = None, contents: Sequence[str] = ()) -> Plan[Any]:
        """Return the plan on a space that is built already; see `build`."""
        if not isinstance(self.kernel, WalkRecipe) or self.kernel.warm_up is None:
            return Plan(self.seed, space, self.kernel.build(space), self.budgets)
        after = self.kernel.after_warm_up(space, chosen)
        pulled = self.kernel.pulled(
            space, chosen, self._tilts_on(space, contents) if chosen and chosen.surrogates else None
        )
        return Plan(self.seed, space, after, self.budgets, self.kernel.first_steps(space), pulled)

    def _tilts_on(self, space: Any, contents: Sequence[str]) -> Callable[[Surrogate, int], Callable[[Any], int]]:
        """Return from a surrogate and the place of a τ the tilt of a state, which is worked out once for each."""
        content = space.content if self.generates else contents.__getitem__
        features = features_of(self.space.objects)

        def tilts(surrogate: Surrogate, place: int) -> Callable[[Any], int]:
            # By what is read, not by the state: of a molecule that is a whole graph.
            tilt = lru_cache(maxsize=_TILTS_KEPT)(lambda read: surrogate.tilt(features(read), place))
            return lambda state: tilt(content(state))

        return tilts

    def _space(self, catalog: Catalog | None, model: LanguageModel | None) -> Any:
        if (catalog is not None) != isinstance(self.space, CatalogRecipe):
            raise TypeError("a catalog must be given for a recipe of kind catalog, and for no other")
        if (model is not None) != isinstance(self.space, ServedTextsRecipe):
            raise TypeError("a model must be given for a recipe that names one, and for no other")
        if catalog is not None:
            self._check_catalog(catalog)
            return catalog
        if isinstance(self.space, ServedTextsRecipe) and model is not None:
            return self.space.build(model)
        return cast(Generated, self.space).build()

    def _check_catalog(self, catalog: Catalog) -> None:
        if "neighbours" in self.moves and not catalog.neighbours:
            message = "the catalog has no neighbour graph; it needs one, or the kernel must be 'independent'"
            raise RecipeError([RecipeProblem("space.neighbours", message)])
        if "independent" not in self.moves and (parts := catalog.components()) > 1:
            message = (
                f"the neighbour graph falls into {parts} parts that no move connects; use a mixture with "
                "independent draws, or more neighbours per item"
            )
            raise RecipeError([RecipeProblem("kernel", message)])
        if isinstance(self.kernel, WalkRecipe) and self.kernel.may_be_always_even and self._alternates(catalog):
            message = (
                "on this catalog every move changes between two halves, so a walk of an even length never leaves its "
                "half; use odd lengths, such as a fixed number, or a mixture with independent draws"
            )
            raise RecipeError([RecipeProblem("kernel.length", message)])

    def _alternates(self, catalog: Catalog) -> bool:
        return self.moves == {"neighbours"} and Neighbours(catalog).alternates()


def parse_recipe(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe that `data` (parsed JSON) describes.

    Raises:
        RecipeError: with every problem found; of a recipe of version 1, only that another program reads it.
    """
    if isinstance(data, Mapping) and data.get("version") == 1:
        message = f"a recipe or a record of version 1 is read by prefmh {_FIRST_PROGRAM}, not by this program"
        raise RecipeError([RecipeProblem("version", message)])
    recipe = validated(data)
    if problems := [*misfits(recipe), *_unbalanced(recipe), *_wrong_target(recipe)]:
        raise RecipeError(problems)
    return recipe


def validated(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe whose fields each are what they should be; they may not fit together yet.

    Raises:
        RecipeError: with every problem found.
    """
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise RecipeError([_problem(each, data) for each in details if not _is_only_echo(each, details)]) from error


def _unbalanced(recipe: Recipe) -> Iterator[RecipeProblem]:
    yield from (RecipeProblem(*problem) for problem in recipe.rule.unbalanced(recipe.judges))


def _wrong_target(recipe: Recipe) -> Iterator[RecipeProblem]:
    if recipe.target not in (None, recipe.law):
        yield RecipeProblem("target", f"judges and rule sample another law: write “{recipe.law}”, or leave it out")


def misfits(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield where the space, the kernel, the rule and who answers do not fit together."""
    space = recipe.space.kind
    for move in sorted(recipe.moves):
        if space not in MOVES_IN[move]:
            fitting = " or ".join(f"'{kind}'" for kind, spaces in MOVES_IN.items() if space in spaces)
            message = f"'{move}' does not move in a space of kind '{space}'; use {fitting}, or a mixture"
            yield RecipeProblem("kernel", message)
    if "neighbours" in recipe.moves and isinstance(recipe.space, CatalogRecipe) and not recipe.space.neighbours:
        yield RecipeProblem("space.neighbours", "must be 1 or more for a kernel that moves to neighbours")
    if isinstance(recipe.kernel, WalkRecipe):
        yield from (RecipeProblem(*problem) for problem in recipe.kernel.misfits(space))
    if recipe.warm_up is not None:
        yield from _warm_up_misfits(recipe, recipe.warm_up)
    if recipe.most_chains is not None:
        yield from (RecipeProblem("most_chains", message) for message in _elastic_misfits(recipe, recipe.most_chains))
    if recipe.burn_in >= recipe.steps:
        yield RecipeProblem("burn_in", f"must be less than the {recipe.steps} steps")
    yield from (RecipeProblem(*problem) for problem in recipe.rule.misfits(recipe.judges))


def _elastic_misfits(recipe: Recipe, most: int) -> Iterator[str]:
    if most <= recipe.chains:
        yield f"must be more than the {recipe.chains} chains of the start; leave it out for a fixed number of chains"
    if recipe.seats:
        yield "does not go with a panel: each further chain waits for all seats; leave it out"
    elif any(judge.source.kind != "people" for judge in recipe.judges):
        yield "does not go with models that judge: chains open when a person would wait; leave it out"


def _warm_up_misfits(recipe: Recipe, warm_up: WarmUp) -> Iterator[RecipeProblem]:
    if warm_up.steps >= recipe.steps:
        yield RecipeProblem("kernel.warm_up.steps", f"must be less than the {recipe.steps} steps of a chain")
    elif warm_up.steps + warm_up.settling >= recipe.steps:
        message = f"leaves no step to sample: {warm_up.steps} + {warm_up.settling} steps of {recipe.steps}"
        yield RecipeProblem("kernel.warm_up.settling", message)
    names = property_names(recipe.space.model_dump(mode="json"))
    if unknown := [name for name in warm_up.properties if name not in names]:
        known = ", ".join(names) or "none, because the record does not hold the pictures; write the length yourself"
        message = f"there is no property '{unknown[0]}' of these objects; there are {known}"
        yield RecipeProblem("kernel.warm_up.properties", message)
    if recipe.seats:
        message = "weighs votes as those of one law, and the seats of a panel differ; choose a fixed number of moves"
        yield RecipeProblem("kernel.warm_up", message)
    if recipe.rule.evidence != "votes":
        yield RecipeProblem("kernel.warm_up", "counts votes, and this rule rates; write the length yourself")
    if warm_up.learned is not None and (not has_features(recipe.space.objects) or recipe.space.kind == "model-texts"):
        message = "needs texts or molecules that the sampler makes or that a file lists"
        yield RecipeProblem("kernel.warm_up.learned", message)


def _problem(found: ErrorDetails, data: object) -> RecipeProblem:
    path, message = _path(found["loc"], data), found["msg"].removeprefix("Value error, ")
    if found["type"] == "union_tag_invalid":
        path, message = [*path, "kind"], f"Input should be one of {found['ctx']['expected_tags']}"
    elif found["type"] == "union_tag_not_found":
        path, message = [*path, "kind"], "Field required"
    return RecipeProblem(".".join(path), message)


def _path(loc: tuple[int | str, ...], data: object) -> list[str]:
    """Return pydantic's `loc` without the kinds that it names wherever a kind decides what may follow."""
    path = []
    for place, part in enumerate(loc):
        if isinstance(data, Mapping):
            # A field that happens to be called like its parent's kind can only be one that is not allowed.
            is_field = part in data and place == len(loc) - 1
            if part == data.get("kind") and not is_field:
                continue
            data = data.get(part)
        elif isinstance(data, Sequence) and isinstance(part, int):
            data = data[part]
        path.append(str(part))
    return path


def _is_only_echo(found: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """True when a list is called too short only because what stands in it is refused already."""
    depth = len(found["loc"])
    return found["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == found["loc"] for other in details
    )
