"""Stories: openings with three properties (section "Multi-condition text generation", L619-659 and L1073-1314)."""

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

SYSTEM_PROMPT: Final = (
    "You are a fiction writer. Respond with only the requested opening paragraph of a story. Do not add explanations, "
    "bullet points, titles, or meta-commentary."
)
"""Of p0, word for word (L1088-1093)."""

_COMPARED: Final = {
    "elevated": "Which opening has more elevated literary language?",
    "gothic": "Which opening has more of a gothic or dramatic atmosphere?",
    "dialogue": "Which opening has more frequent direct dialogue?",
}
_RATED: Final = {
    "elevated": "How elevated and literary is the language of this opening?",
    "gothic": "How gothic or dramatic is the atmosphere of this opening?",
    "dialogue": "How frequent is direct dialogue in this opening?",
}
_ALL: Final = "elevated literary language, gothic or dramatic atmosphere, and direct dialogue"
_JOINT = Asked("joint", f"Which opening has more {_ALL}?", "stories-joint")
_JOINT_RATED = Asked("joint", f"How much {_ALL}, all three, does this opening have?", "stories-rating")
_KERNEL = "mixture: 0.1 independent, 0.9 suffix with the cut uniform over the limit"
_COLUMNS = ("elevated", "gothic", "dialogue", "bt_elevated", "bt_gothic", "bt_dialogue")
_LABELS = ("Elevated", "Gothic", "Dialogue", "BT elevated", "BT gothic", "BT dialogue")


def _row(means: tuple[float, ...], spreads: tuple[float, ...], scores: tuple[float, ...]) -> dict[str, Published]:
    cells = [Published(mean, spread) for mean, spread in zip(means, spreads, strict=True)]
    return dict(zip(_COLUMNS, cells + [Published(score) for score in scores], strict=True))


STORIES: Final = Experiment(
    name="stories",
    title="Stories with three properties",
    objects="texts",
    directions=(Direction("", 50),),
    methods=(
        ExperimentMethod(
            "base",
            "Base LLM",
            "base",
            "independent",
            "L630, L1120",
            published=_row((0.801, 0.744, 0.552), (0.009, 0.111, 0.161), (-0.841, -0.902, -0.413)),
        ),
        ExperimentMethod(
            "pointwise-sep",
            "Pointwise-MH (sep.)",
            "pointwise",
            _KERNEL,
            "L1150-1165",
            tuple(Asked(name, question, "stories-rating") for name, question in _RATED.items()),
            asks=1,
            parameters={"form": "separate", "scale": (1, 10), "map": "s/10"},
            published=_row((0.803, 0.767, 0.585), (0.018, 0.089, 0.161), (-0.361, -0.474, -0.161)),
        ),
        ExperimentMethod(
            "pointwise-joint",
            "Pointwise-MH (joint)",
            "pointwise",
            _KERNEL,
            "L1166-1178",
            (_JOINT_RATED,),
            asks=1,
            parameters={"form": "joint", "scale": (1, 10), "map": "s/10"},
            published=_row((0.802, 0.751, 0.564), (0.015, 0.107, 0.160), (-0.675, -0.758, -0.504)),
        ),
        ExperimentMethod(
            "pref-joint",
            "Pref-MH (joint)",
            "n-vote",
            _KERNEL,
            "L1138-1148",
            (_JOINT,),
            asks=3,
            parameters={"order": "random"},
            published=_row((0.810, 0.786, 0.610), (0.030, 0.091, 0.174), (0.295, 0.320, -0.012)),
        ),
        ExperimentMethod(
            "pref-sep",
            "Pref-MH (sep.)",
            "n-vote",
            _KERNEL,
            "L1125-1137",
            tuple(Asked(name, question, "stories") for name, question in _COMPARED.items()),
            asks=3,
            parameters={"order": "random"},
            published=_row((0.817, 0.797, 0.693), (0.037, 0.065, 0.147), (0.703, 0.755, 0.639)),
        ),
    ),
    default_methods=("base", "pointwise-sep", "pointwise-joint", "pref-joint", "pref-sep"),
    reference="pref-sep",
    spacing="last",
    sizes={
        "paper": Size(steps=300, burn_in=50, keep=50, matches=10),
        "laptop": Size(steps=6, burn_in=1, keep=2, prompts=2, matches=2),
    },
    settings=(
        Setting("writer", "Llama-3.1-8B-Instruct", "L623, L1105"),
        Setting("judge", "Llama-3.1-8B-Instruct", "L626, L1105"),
        Setting("evaluator", "Llama-3.1-8B-Instruct", "L1105"),
        Setting("inputs", 50, "L624, L1095"),
        Setting("scenarios", "STORY_SCENARIOS", CHOSEN, "one is quoted (L1085); --data FILE brings others"),
        Setting("system_prompt", SYSTEM_PROMPT, "L1088-1093"),
        Setting("user_message", "the scenario", CHOSEN),
        Setting("limit", 192, "L1096", "new tokens"),
        Setting("limit_laptop", 24, CHOSEN, "new tokens at --scale laptop"),
        Setting("temperature", 0.9, "L1096"),
        Setting("truncation", None, CHOSEN, "no top-p and no top-k: p0 is the model's own law"),
        Setting("precision", "bfloat16", CHOSEN),
        Setting("fresh", 0.1, "L1108-1117"),
        Setting("cut", "limit", "L1110-1115", "a cut past the end proposes to stay"),
        Setting("r0", 1, "L1116"),
        Setting("order", "random", CHOSEN, "drawn for each vote, as for images"),
        PLAIN_JUDGE,
        Setting("rating_map", "s/10", "L1151", "(s-1)/9 cannot give the published SD of .009 at a mean of .801"),
        Setting("start", "a draw of p0", "L1181"),
        Setting("kept", "the last states, without thinning", "L1183"),
        Setting("base_draws", "as many as are kept of each chain", CHOSEN),
        Setting("rating_scale", (1, 10), "L1186-1189", "of the evaluator, divided by 10 (L1200)"),
        Setting("tournament", "both orders, natural log-odds, mean 0", CHOSEN, "the paper's reference is not stated"),
        UNREADABLE,
    ),
    rated=(
        *(Asked(name, question, "stories-evaluator", "evaluator") for name, question in _RATED.items()),
        Asked("overall", "How good is this opening paragraph overall?", "stories-evaluator", "evaluator"),
    ),
    compared=tuple(Asked(name, question, "stories", "evaluator") for name, question in _COMPARED.items()),
    columns=(
        *(Column(name, label, True, 3) for name, label in zip(_COLUMNS[:3], _LABELS[:3], strict=True)),
        Column("overall", "Overall", True, 3),
        *(Column(name, label, True, 3) for name, label in zip(_COLUMNS[3:], _LABELS[3:], strict=True)),
    ),
    roles=("writer", "judge", "evaluator"),
    spread="standard deviation over samples",
)
