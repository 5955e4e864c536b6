"""How objects are shown to people, given to models, and measured: a presenter for each kind of object."""

from prefmh_web.objects.audio import Audio
from prefmh_web.objects.images import Images
from prefmh_web.objects.kind import ObjectKind, StoredObject
from prefmh_web.objects.molecules import Molecules
from prefmh_web.objects.texts import Markdown, Texts

_KINDS: tuple[ObjectKind, ...] = (Texts(), Markdown(), Molecules(), Images(), Audio())
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}

__all__ = ["OBJECT_KINDS", "ObjectKind", "StoredObject"]
