"""Kinds of object: how files of them are read, which are near each other, what can be measured, how they are drawn.

To add a kind: write a file with what reads an object and tells which are near, as `audio.py` is; give it a row here.
"""

from sampler.objects.audio import encoded, timbre
from sampler.objects.images import encoded_anew, thumbnail
from sampler.objects.items import FileKind, ListedKind, ObjectKind
from sampler.objects.molecules import canonical_smiles, nearest_molecules
from sampler.objects.writing import checked_writing, nearest_by_words, shown_alike

_KINDS: tuple[ObjectKind, ...] = (
    ListedKind("texts", "text", checked_writing, nearest_by_words, shown_alike),
    ListedKind("markdown", "text", checked_writing, nearest_by_words, shown_alike),
    ListedKind("molecules", "smiles", canonical_smiles, nearest_molecules),
    FileKind("images", "picture", encoded_anew, thumbnail),
    FileKind("audio", "recording", encoded, timbre),
)
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}
