"""Molecules, drawn from their SMILES."""

import threading
from functools import lru_cache

import sampler
from prefmh_web.objects.kind import Media, ObjectKind, RenderOptions, StoredObject
from sampler.judges import Picture, ShownObject

# A browser asks for both drawings of a pair at once: one of the requests makes them.
_drawing_a_pair = threading.Lock()


class Molecules(ObjectKind):
    """Molecules; their content is a canonical SMILES."""

    name = "molecules"
    noun = "molecule"
    nouns = "molecules"
    source = "row"
    # Aspirin and paracetamol.
    samples = (StoredObject("CC(=O)Oc1ccccc1C(=O)O"), StoredObject("CC(=O)Nc1ccc(O)cc1"))
    has_differences = True
    in_line = ("QED {qed:.2f}", "SA {synthetic_accessibility:.1f}", "{weight:.0f} Da", "logP {log_p:.1f}")

    def shown_object(self, shown: StoredObject, sees_pictures: bool) -> ShownObject:
        """Return the SMILES, and a drawing for a model that sees pictures."""
        if not sees_pictures:
            return ShownObject(text=shown.content)
        drawing = self.media(shown, RenderOptions(raster=True))
        return ShownObject(text=shown.content, picture=Picture(drawing.media_type, drawing.body))

    def media(self, shown: StoredObject, look: RenderOptions, other: StoredObject | None = None) -> Media:
        """Return a drawing, oriented as the molecule that it is seen beside."""
        if look.raster:
            return Media(sampler.molecule_png(shown.content), "image/png")
        return Media(_drawing(shown.content, other.content if other else None, look).encode(), "image/svg+xml")


def _drawing(smiles: str, other: str | None, look: RenderOptions) -> str:
    if other is None:
        return sampler.draw_molecule(smiles, dark=look.dark)
    # Taken in one order, so that both halves of a pair find the drawing that the first of them has made.
    first, second = sorted((smiles, other))
    with _drawing_a_pair:
        return _pair(first, second, look.marked, look.dark)[smiles != first]


@lru_cache(maxsize=256)
def _pair(first: str, second: str, marked: bool, dark: bool) -> tuple[str, str]:
    return sampler.draw_pair(first, second, marked=marked, dark=dark)
