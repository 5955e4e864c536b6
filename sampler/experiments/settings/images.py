"""Images: latents of SDXL-Turbo with three objects in the picture (section "Image generation in continuous space",
L663-686 and L1316-1459)."""

from __future__ import annotations

from typing import Final

from sampler.experiments.settings.values import (
    CHOSEN,
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

IMAGE_PROMPT: Final = (
    "A macro photograph of a glass terrarium interior: a bright orange salamander climbing on a piece of grey "
    "driftwood, a small turquoise butterfly flying in the terrarium, and a red mushroom with white spots growing at "
    "the base near soil."
)
"""Of SDXL-Turbo, word for word (L1330-1335)."""

_PROPERTIES: Final = {
    "salamander": "an orange salamander on grey driftwood",
    "butterfly": "a turquoise butterfly flying in the scene",
    "mushroom": "a red mushroom with white spots near the soil",
}
_OBJECTS: Final = {
    "salamander": "an orange salamander",
    "butterfly": "a turquoise butterfly",
    "mushroom": "a red mushroom",
}
_COMPARED = tuple(Asked(name, f"Which image better shows {what}?", "images") for name, what in _PROPERTIES.items())
_KERNEL = "mixture: 0.6 pCN beta 0.08, 0.3 pCN beta 0.25, 0.1 independent"


def _row(share: float, aesthetic: float) -> dict[str, Published]:
    return {"all_three": Published(share), "aesthetic": Published(aesthetic)}


IMAGES: Final = Experiment(
    name="images",
    title="Images with three objects",
    objects="images",
    directions=(Direction("", 1),),
    methods=(
        ExperimentMethod("base", "Base", "base", "independent", "L1381-1385", published=_row(0.045, 6.287)),
        ExperimentMethod(
            "pointwise",
            "Pointwise-MH",
            "pointwise",
            _KERNEL,
            "L1402-1416",
            tuple(
                Asked(name, f"How well does the image show {what}?", "images-rating")
                for name, what in _PROPERTIES.items()
            ),
            asks=1,
            parameters={"form": "separate", "scale": (0, 10), "map": "s/10"},
            published=_row(0.074, 6.289),
        ),
        ExperimentMethod(
            "pref",
            "Pref-MH",
            "n-vote",
            _KERNEL,
            "L1387-1400",
            _COMPARED,
            asks=9,
            parameters={"order": "random"},
            published=_row(0.636, 6.395),
        ),
    ),
    default_methods=("base", "pointwise", "pref"),
    reference="pref",
    spacing="last",
    sizes={
        "paper": Size(steps=3_000),
        "laptop": Size(steps=10),
    },
    settings=(
        Setting("writer", "SDXL-Turbo", "L1327"),
        Setting("judge", "Qwen3-VL-8B-Instruct", "L666, L1350"),
        Setting("detector", "Gemma-3-12B-IT", "L1444"),
        Setting("aesthetic", "Aesthetic Predictor V2.5", "L1447"),
        Setting("image_prompt", IMAGE_PROMPT, "L1330-1335"),
        Setting("side", 512, "L1336", "pixels"),
        Setting("latent", (4, 64, 64), CHOSEN, "that of the model at this size"),
        Setting("inference_steps", 2, CHOSEN, "as the authors' script has it"),
        Setting("guidance", 0.0, CHOSEN, "as the authors' script has it"),
        Setting("precision", "float16", CHOSEN, "as the authors' script has it"),
        Setting("p0", "N(0, I)", "L1337"),
        Setting("kernel", _KERNEL, "L1357-1379"),
        Setting("r0", 1, "L1374-1379"),
        Setting("order", "random", "L1389"),
        Setting("judge_temperature", 0.3, CHOSEN, "as the authors' script has it, without its top-p of .8"),
        Setting("rating_map", "s/10", "L1404"),
        Setting("start", "a draw of p0", CHOSEN),
        Setting("base_draws", "as many as are evaluated of each chain", CHOSEN),
        Setting("evaluated", "every state after the start", CHOSEN, "the paper's count is not stated"),
        Setting("detector_temperature", 0.0, CHOSEN, "three yes/no questions, greedy"),
        Setting("shown_steps", (300, 1200, 1800, 2700), "L682"),
        Setting("shown_every", 300, "L1421-1436"),
        UNREADABLE,
    ),
    rated=tuple(
        Asked(name, f"Is {what} in the image? Answer yes or no.", "", "detector") for name, what in _OBJECTS.items()
    ),
    compared=tuple(Asked(each.name, each.question, each.preset, "evaluator") for each in _COMPARED),
    columns=(
        Column("all_three", "All three", True, 3),
        Column("all_three_second_half", "All three, second half", True, 3),
        Column("aesthetic", "Aesthetic", True, 3, "aesthetic"),
    ),
    roles=("writer", "judge", "evaluator", "detector"),
    scorers=("aesthetic",),
)
