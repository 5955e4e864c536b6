"""The pictures of compared records: patterns are drawn from their codes, others are those that the record holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sampler.experiments.comparing import ComparedObject, ComparedRecord, ComparedRecords
from sampler.objects.images.encoding import png
from sampler.record.pictures import record_pictures
from sampler.record.replay import RecordError
from sampler.spaces.images.space import ImagesRecipe


@dataclass(frozen=True)
class MetPicture:
    """The picture of an object that meets others.

    Args:
        record: what the tables call its record, as in "r1".
        state: the number of the object there.
        png: the picture.
    """

    record: str
    state: str
    png: bytes


def met_pictures(comparison: ComparedRecords) -> Iterator[MetPicture]:
    """Yield the picture of every object that meets others, once each: there may be more than a memory takes.

    Raises:
        RecordError: a record has no pictures, or one that cannot be used; the message names the file and the row.
        OSError: a record cannot be read.
    """
    met = comparison.met()
    for name, record in zip(comparison.ids, comparison.records, strict=True):
        ends = [match.one_state for match in met if match.one == name]
        ends += [match.other_state for match in met if match.other == name]
        wanted = {record.objects[state].state: record.objects[state] for state in ends}
        pictures = _drawn if record.space["kind"] == "images" else _stored
        for found, body in pictures(record, [*wanted.values()]):
            yield MetPicture(name, found.state, body)


def _drawn(record: ComparedRecord, wanted: list[ComparedObject]) -> Iterator[tuple[ComparedObject, bytes]]:
    space = ImagesRecipe.model_validate(record.space).build()
    for found in wanted:
        try:
            pixels = space.pixels(space.decode(found.code))
        except ValueError as error:
            raise RecordError(
                f"{record.path.name}: the code in row {found.row} of states.csv makes no picture: {error}"
            ) from error
        yield found, png(pixels)


def _stored(record: ComparedRecord, wanted: list[ComparedObject]) -> Iterator[tuple[ComparedObject, bytes]]:
    with record_pictures(record.path) as pictures:
        for found in wanted:
            yield found, pictures.png(found.state, found.content, found.row)
