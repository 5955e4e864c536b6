"""Molecules: fragment moves from CC (section "De novo molecular design", L688-744 and L1461-1574)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sampler.experiments.settings.values import (
    CHOSEN,
    PLAIN_JUDGE,
    UNREADABLE,
    Asked,
    Column,
    Direction,
    Experiment,
    ExperimentMethod,
    Plain,
    Published,
    Setting,
    Size,
)

_COMPARED: Final = Asked(
    "follow-up", "Which of the two SMILES molecules is more promising for medicinal-chemistry follow-up?", "molecules"
)
_RATED: Final = Asked(
    "follow-up", "How promising is the molecule for medicinal-chemistry follow-up?", "molecules-rating"
)
_KERNEL = "fragments: 0.5 addition, 0.5 deletion, drawn at random"
_LEARNED = "fragments: 0.5 addition, 0.5 deletion, drawn by MARS's learned editor"
_NOT_EXACT = "r0 = 1 for every valid proposal (L1546-1551), so the chain does not sample the law of its rule"
_COLUMNS = ("qed", "sa", "diversity", "molskill_mean", "molskill_median")


def _row(*cells: tuple[float, float]) -> dict[str, Published]:
    return {name: Published(*cell) for name, cell in zip(_COLUMNS, cells, strict=True)}


_SCORE: Final[dict[str, Plain]] = {"score": "mars", "beta": 30.0, "convention": "paper"}
_AS_PAPER = (
    ExperimentMethod(
        "mars",
        "MARS",
        "score",
        _LEARNED,
        "L1486-1513, L701",
        parameters={**_SCORE, "proposal": "learned"},
        published=_row((0.773, 0.002), (0.789, 0.006), (0.895, 0.005), (-0.226, 0.544), (-0.157, 0.464)),
        inexact=_NOT_EXACT,
    ),
    ExperimentMethod(
        "mars-plain", "MARS, plain proposals", "score", _KERNEL, CHOSEN, parameters=_SCORE, inexact=_NOT_EXACT
    ),
    ExperimentMethod(
        "pointwise",
        "Pointwise-MH",
        "pointwise",
        _KERNEL,
        "L1528-1544",
        (_RATED,),
        asks=8,
        parameters={"form": "power", "beta": 30.0, "scale": (1, 10), "convention": "paper"},
        published=_row((0.606, 0.006), (0.761, 0.004), (0.900, 0.001), (-0.098, 0.261), (0.303, 0.309)),
        inexact=_NOT_EXACT,
    ),
    ExperimentMethod(
        "pref",
        "Pref-MH",
        "n-vote",
        _KERNEL,
        "L1515-1526",
        (_COMPARED,),
        asks=8,
        parameters={"order": "balanced", "convention": "paper"},
        published=_row((0.698, 0.002), (0.781, 0.001), (0.899, 0.001), (-1.432, 0.398), (-1.116, 0.396)),
        inexact=_NOT_EXACT + "; four votes in each order are pooled, which a lean to one side biases",
    ),
)


def _exact(method: ExperimentMethod) -> ExperimentMethod:
    """Return the row that `--exact` adds: the base ratio itself, and one judge for each order of two."""
    parameters = {**method.parameters, "convention": "exact"}
    row = replace(method, name=f"{method.name}-exact", label=f"{method.label}, exact", published={}, inexact="")
    if method.rule != "n-vote":
        return replace(row, source=CHOSEN, parameters=parameters)
    # Two judges of one question with opposite orders, N/2 votes each: a lean cancels, and the law is p0 exp(2s).
    twins = tuple(replace(_COMPARED, name=f"follow-up-{order}-first") for order in ("proposal", "current"))
    parameters["order"] = "two-judge"
    return replace(row, source=CHOSEN, parameters=parameters, judges=twins, asks=method.asks // 2)


EXACT_SUFFIX: Final = "-exact"
"""Of the rows that `--exact` adds."""

MOLECULES: Final = Experiment(
    name="molecules",
    title="De novo molecules",
    objects="molecules",
    directions=(Direction("", 1),),
    methods=(*_AS_PAPER, *map(_exact, _AS_PAPER)),
    default_methods=("mars", "mars-plain", "pointwise", "pref"),
    reference="pref",
    spacing="last",
    sizes={
        "paper": Size(steps=1_000, keep=1, chains=200, seeds=(0, 1, 2, 3, 4)),
        "laptop": Size(steps=20, keep=1, chains=4, seeds=(0, 1)),
    },
    settings=(
        Setting("judge", "Qwen3-235B-A22B-Instruct-2507", "L701, L1479"),
        Setting("molskill", "MolSkill", "L703, L1559"),
        Setting("vocabulary", "our arms", CHOSEN, "MARS's list of 1,000 (L1473) is CC BY-NC: --data FILE brings it"),
        Setting("largest_arm", 10, "L1475", "heavy atoms"),
        Setting("start", "CC", "L1476"),
        Setting("heavy_atoms", 40, "L1477"),
        Setting("addition", 0.5, CHOSEN, "additions and deletions (L701), half each"),
        Setting("r0", 1, "L1546-1551", "convention paper; --exact adds rows with the base ratio itself"),
        Setting("order", "balanced", "L1517", "four votes in each order, pooled"),
        PLAIN_JUDGE,
        Setting("beta", 30.0, "L1510, L1544"),
        Setting("score", "(min(QED, .7) + min((10 - SA)/9, .7)) / 2", "L1489-1498"),
        Setting("editor", "four encoders of 6 layers, 64 node and 128 edge units", CHOSEN, "MARS's release"),
        Setting("editor_training", "Adam 3e-4, 25 updates a step at most, on edits that raise the score", CHOSEN,
                "MARS's release"),
        Setting("seeds", 5, "L1555"),
        Setting("evaluated", "the final state of each chain", "L1556"),
        Setting("fingerprint", "Morgan, radius 3, 2,048 bits", CHOSEN, "following MARS (L1565)"),
        Setting("duplicates", "kept", CHOSEN, "all final states; MARS takes its successful ones only"),
        Setting("spread", "SD over runs / sqrt(runs)", "L1556"),
        UNREADABLE,
    ),
    rated=(),
    compared=(replace(_COMPARED, role="evaluator"),),
    columns=(
        Column("qed", "QED", True, 3),
        Column("sa", "SA", True, 3),
        Column("diversity", "Div.", True, 3),
        Column("molskill_mean", "MolSkill mean", False, 3, "molskill"),
        Column("molskill_median", "MolSkill median", False, 3, "molskill"),
    ),
    roles=("judge", "evaluator"),
    spread="standard error over runs",
    scorers=("molskill",),
)  # fmt: skip
