"""Translation: WMT23 in two directions, beside QUEST (section "Machine translation", L1576-1775)."""

from __future__ import annotations

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
    Published,
    Setting,
    Size,
)

BETAS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""QUEST's (L1643)."""

_KERNEL = "suffix with the cut uniform on 0 ... n - 1"
_METRICS = ("bleu", "chrf", "ter", "xcomet")
_DIRECTIONS: Final = (Direction("de-en", 549), Direction("en-de", 557))
_COMPARED = Asked("translation", "Which translation of the source sentence is better?", "translation")
_NAMES = tuple(f"{metric}_{direction.name}" for direction in _DIRECTIONS for metric in _METRICS)


def _row(german: tuple[float, ...], english: tuple[float, ...], marks: str = "  ") -> dict[str, Published]:
    """Two directions, four metrics each; XCOMET has a dagger of its own in each, the others have none."""
    cells = [Published(value) for value in (*german, *english)]
    for place, mark in ((3, marks[0]), (7, marks[1])):
        cells[place] = Published(cells[place].value, mark=mark.strip())
    return dict(zip(_NAMES, cells, strict=True))


_QUEST: Final = {
    0.01: _row((35.83, 63.29, 51.94, 0.9017), (32.00, 61.10, 58.13, 0.8707), "††"),
    0.02: _row((35.99, 63.13, 51.82, 0.9025), (32.39, 61.31, 57.70, 0.8700), "††"),
    0.05: _row((36.94, 63.38, 51.08, 0.8952), (32.30, 61.20, 56.37, 0.8654), "††"),
    0.1: _row((37.04, 63.41, 49.88, 0.8907), (32.01, 60.74, 56.86, 0.8570), "‡†"),
    0.2: _row((36.73, 62.97, 50.13, 0.8828), (31.64, 60.46, 57.12, 0.8418)),
    0.5: _row((36.94, 62.97, 49.95, 0.8763), (30.91, 59.87, 57.54, 0.8278)),
}

_PUBLISHED_QUEST = tuple(
    ExperimentMethod(
        f"quest-{beta:g}",
        f"QUEST (β = {beta:g})",
        "quest",
        _KERNEL,
        "L1622-1650",
        parameters={"beta": beta, "ratio": "paper"},
        published=_QUEST[beta],
    )
    for beta in BETAS
)
_RELEASED_QUEST = tuple(
    ExperimentMethod(
        f"quest-released-{beta:g}",
        f"QUEST as released (β = {beta:g})",
        "quest",
        _KERNEL,
        CHOSEN,
        parameters={"beta": beta, "ratio": "released"},
        inexact="the released ratio takes the mean log-probability of the suffix, and samples neither target",
    )
    for beta in BETAS
)

TRANSLATION: Final = Experiment(
    name="translation",
    title="Machine translation",
    objects="texts",
    directions=_DIRECTIONS,
    methods=(
        *_PUBLISHED_QUEST,
        *_RELEASED_QUEST,
        ExperimentMethod(
            "pointwise",
            "Pointwise-MH",
            "pointwise",
            _KERNEL,
            "L1666-1681",
            (Asked("translation", "How good is this translation of the source sentence?", "translation-rating"),),
            asks=5,
            parameters={"form": "difference", "scale": (1, 10)},
            published=_row((37.44, 63.31, 49.26, 0.8755), (31.46, 60.37, 56.82, 0.8252)),
        ),
        ExperimentMethod(
            "pref",
            "Pref-MH",
            "n-vote",
            _KERNEL,
            "L1652-1664",
            (_COMPARED,),
            asks=5,
            parameters={"order": "random"},
            published=_row((39.59, 65.30, 47.57, 0.8886), (34.09, 62.98, 54.07, 0.8521)),
        ),
    ),
    default_methods=(*(method.name for method in _PUBLISHED_QUEST), "pointwise", "pref"),
    reference="pref",
    spacing="even",
    sizes={
        "paper": Size(steps=128, burn_in=32, keep=16),
        "laptop": Size(steps=8, burn_in=2, keep=3, prompts=3),
    },
    settings=(
        Setting("writer", "TowerInstruct-7B-v0.2", "L1593"),
        Setting("judge", "Qwen2.5-32B-Instruct", "L1612"),
        Setting("quality", "wmt23-cometkiwi-da-xl", "L1616-1620"),
        Setting("xcomet", "XCOMET-XL", "L1692"),
        Setting("data", "WMT23", "L1590-1592", "549 and 557 sentences; --data FILE brings them, nothing is downloaded"),
        Setting(
            "user_message",
            "Translate the following text from {from} into {to}.\n{from}: {source}\n{to}:",
            CHOSEN,
            "Tower's own request for a translation, without the example sentence of its model card",
        ),
        Setting("languages", ("de: German", "en: English"), CHOSEN, "as the request names them"),
        Setting("temperature", 0.8, "L1594"),
        Setting("limit", 256, "L1594", "new tokens"),
        Setting("truncation", None, CHOSEN, "no top-p and no top-k: p0 is the model's own law"),
        Setting("precision", "bfloat16", CHOSEN),
        Setting("cut", "length", "L1596-1601"),
        Setting("r0", "n/n'", "L1602-1609", "n counts the end token; without it the chain is not exact"),
        Setting("judge_sees", ("source", "candidates", "quality estimate"), "L1613-1620"),
        Setting("quality_digits", 3, CHOSEN),
        Setting("order", "random", "L1654"),
        PLAIN_JUDGE,
        Setting("rating", "exp of the difference, not normalised", "L1672-1678"),
        Setting("clip", 0.001, "L1630"),
        Setting("betas", BETAS, "L1643"),
        Setting("start", "a draw of p0", "L1684"),
        Setting("kept", "evenly spaced after the burn-in", "L1686"),
        Setting("sacrebleu", "sentence level, BLEU with effective order", CHOSEN, "the paper names no signature"),
        Setting("averaged", "over states, then over sources", "L1687"),
        Setting("resamples", 10_000, "L1696"),
        Setting("level", 0.95, "L1697", "two-sided"),
        UNREADABLE,
    ),
    rated=(),
    compared=(Asked(_COMPARED.name, _COMPARED.question, _COMPARED.preset, "evaluator"),),
    columns=(
        Column("bleu", "BLEU", True, 2),
        Column("chrf", "chrF", True, 2),
        Column("ter", "TER", False, 2),
        Column("xcomet", "XCOMET", True, 4, "xcomet"),
        # Not in the paper's table: what QUEST goes by, and judges are shown.
        Column("quality", "quality", True, 4, "quality"),
    ),
    roles=("writer", "judge", "evaluator"),
    scorers=("quality", "xcomet"),
)
