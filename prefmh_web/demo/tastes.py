"""What the demo's simulated people like: hidden Bradley-Terry scores s(x), of about -2 to 2 nats."""

from __future__ import annotations

import math
import re
import statistics

import numpy as np
import numpy.typing as npt

import sampler

# Stems of words; 2 for the furniture of a gothic tale, 1 for what often stands beside it.
_GOTHIC_STEMS = {
    2: (
        "abbey bloodless burial buried castle chains coffin corpse countess crypt dead death died dying drowned "
        "ghastly ghost grave haunt hollow moan mourn ruin shriek shroud skeleton skull tomb vault"
    ),
    1: (
        "abbot bats bell bleed blood bone candle cobweb cold convent crimson curse damp dark dusk dust fear fog "
        "footprint funeral gloom guttering hanged hood iron ivy knives lantern lightning marquis midnight mist monk "
        "moon moor night pale pray rott shadow silen sob storm thirteen thorn toll tower trembl veil weep whisper "
        "widow wolves yew"
    ),
}
_STEM_WEIGHTS = {stem: weight for weight, stems in _GOTHIC_STEMS.items() for stem in stems.split()}
_GOTHIC_WORD = re.compile(rf"\b({'|'.join(sorted(_STEM_WEIGHTS, key=len, reverse=True))})")

_WORD = re.compile(r"[\w’-]+")
# A question inside a line of speech goes on in lower case, so it does not end the narrator's sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?])”?\s+(?=[A-Z“])")
_FILLERS = frozenset(
    ["very", "really", "quite", "just", "somewhere", "something", "somebody", "little", "nothing", "already"]
)


def gothic_mood(text: str) -> float:
    """Return how gothic the mood is: -2 with no word of the kind, rising towards 2 as they gather."""
    found = sum(_STEM_WEIGHTS[stem] for stem in _GOTHIC_WORD.findall(text.lower()))
    # Each further word tells less: after a crypt, a coffin is hardly news.
    return 2 - 4 * math.exp(-found / 5)


def good_writing(text: str) -> float:
    """Return how well written it is: a short sentence among long ones, speech, few repeated or empty words."""
    words = [word.lower() for word in _WORD.findall(text)]
    lengths = [len(_WORD.findall(sentence)) for sentence in _SENTENCE_END.split(text)]
    rhythm = statistics.pstdev(lengths) / statistics.fmean(lengths)
    variety = len(set(words)) / len(words)
    fillers = sum(word in _FILLERS for word in words)
    speech = "“" in text
    return 3 * (rhythm - 0.5) + 7 * (variety - 0.75) + 0.6 * (speech - 0.4) - 0.3 * (fillers - 1)


def drug_likeness(smiles: str) -> float:
    """Return the quantitative estimate of drug-likeness (QED, 0 to 1), stretched to about -2..2.

    Raises:
        ValueError: not a molecule.
    """
    qed = sampler.describe_molecule(smiles).qed
    # What it cannot be computed for is unlike any drug.
    return 5 * ((0.0 if qed is None else qed) - 0.6)


def colourfulness(pixels: npt.NDArray[np.uint8]) -> float:
    """Return how colourful a picture is, after Hasler and Süsstrunk (2003), stretched to about -2..2."""
    # The square root, because a grey picture gains more from a little colour than a gaudy one from a little more.
    return (math.sqrt(sampler.describe_image(pixels).colourfulness) - 6.7) / 2.3
