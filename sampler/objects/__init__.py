"""Kinds of object: how files of them are read, which are near each other, what can be measured, how they are drawn.

To add a kind: write a file with what reads an object and tells which are near, as `audio.py` is; give it a row here.
"""

from sampler.objects.audio import describe_audio, encoded, timbre
from sampler.objects.images import describe_image, encoded_anew, thumbnail
from sampler.objects.items import FileKind, ListedKind, ObjectKind
from sampler.objects.markdown import describe_markdown
from sampler.objects.molecules import canonical_smiles, describe_molecule, nearest_molecules
from sampler.objects.writing import checked_writing, describe_text, nearest_by_words, shown_alike

_WRITING = ("text", checked_writing, nearest_by_words, shown_alike)
_KINDS: tuple[ObjectKind, ...] = (
    ListedKind("texts", describe_text, ("words", "readability"), *_WRITING),
    ListedKind("markdown", describe_markdown, ("words", "list_items"), *_WRITING),
    ListedKind(
        "molecules", describe_molecule, ("heavy_atoms", "log_p", "qed"), "smiles", canonical_smiles, nearest_molecules
    ),
    FileKind("images", describe_image, ("contrast", "colourfulness"), "picture", encoded_anew, thumbnail),
    FileKind("audio", describe_audio, ("seconds", "level"), "recording", encoded, timbre),
)
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}
