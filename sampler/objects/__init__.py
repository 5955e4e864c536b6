"""Kinds of object: how files of them are read, which are near each other, what can be measured, how they are drawn.

To add a kind: copy one of the files, `audio.py` for example, and add its class to `OBJECT_KINDS`.
"""

from sampler.objects.audio import Audio
from sampler.objects.images import Images
from sampler.objects.items import ObjectKind
from sampler.objects.molecules import Molecules
from sampler.objects.writing import Writing

_KINDS: tuple[ObjectKind, ...] = (Writing("texts"), Writing("markdown"), Molecules(), Images(), Audio())
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}
