"""A setup as a file: `campaign.yaml` alone, or a ZIP of it with the uploaded file under its hash.

A file is read to its configuration, or to every reason why it is none, each with its line and column. The same setup is
always the same bytes: a ZIP has no dates in it.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, partial
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import ValidationError

import sampler
from prefmh_web import config_yaml
from prefmh_web.campaigns.models import Campaign, Catalog, NotPossible
from prefmh_web.config import HIDDEN, CampaignConfig, FieldError, UploadedFile, json_schema, validation_errors
from prefmh_web.config_yaml import Problem, SetupError, refused
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import offered
from prefmh_web.transport.refusals import is_no_room

_FIXES = {
    "Field required": "is missing; add it",
    "Input should be a valid string": "must be text; put it in quotes",
}
_UNKNOWN = "Extra inputs are not permitted"
Tell = Callable[[Problem], None]


def config_in(
    content: bytes | str, tell: Tell | None = None, owner: User | None = None, kept: CampaignConfig | None = None
) -> CampaignConfig:
    """Return the configuration that `campaign.yaml` describes.

    Args:
        owner: whom it must fit; None to leave that to `drafts.create`, which knows no lines.
        kept: what its campaign has now; see `of_owner`.
        tell: is told of each value that a record's copy has left out, where it can be done without.

    Raises:
        SetupError: with every problem found.
    """
    document = config_yaml.read(content if isinstance(content, str) else _decoded(content))
    if not isinstance(document.data, dict):
        raise SetupError([document.problem("", "The setup must be keys with values, such as “name: My campaign”.")])
    left_out = [*_left_out(document)]
    try:
        config = CampaignConfig.model_validate(document.data)
    except ValidationError as error:
        found = sampler.problems_in(error, document.data)
        raise SetupError([_told(document, each.path, each.message) for each in found]) from error
    wrong = [*_truths(document.data, config), *validation_errors(config)]
    wrong += of_owner(config, owner, kept) if owner else of_scorers(config)
    if wrong:
        raise SetupError([document.problem(path, message) for path, message in wrong])
    for each in left_out:
        if tell:
            tell(each)
    return config


def of_scorers(config: CampaignConfig) -> Iterator[FieldError]:
    """Yield each scorer of a setup that this site offers, but for other objects.

    One that the site does not have at all may be declared before the start, which refuses it otherwise.
    """
    field = "scorer" if isinstance(config.rule, sampler.QuestConfig) else "scorers"
    objects = config.space.objects
    for path, names in ((f"rule.{field}", config.rule.scorers), ("scorers", config.scorers)):
        here = offered(objects) if names else {}
        missing = [name for name in names if name not in here]
        elsewhere = {name for kind in OBJECT_KINDS if missing for name in offered(kind)}
        if name := next((name for name in missing if name in elsewhere), ""):
            yield path, f"“{name}” is not offered for {OBJECT_KINDS[objects].nouns}; there are {', '.join(here)}"


def of_owner(config: CampaignConfig, owner: User, kept: CampaignConfig | None = None) -> Iterator[FieldError]:
    """Yield each thing that a setup refers to and its owner lacks, or has of another kind.

    Args:
        kept: what its campaign has now. The earlier campaigns that this names may have other names by now, or be
            deleted.
    """
    yield from of_scorers(config)
    known = kept.study.refused if kept else ()
    for index, each in enumerate(config.study.refused):
        if each in known:
            continue
        mine = Campaign.objects.filter(pk=each.number, owner=owner, name=each.name)
        found = mine.exclude(status=Campaign.Status.DELETING).first()
        if found is None or found.is_draft:
            yield (
                f"study.refused.{index}",
                f"{owner} has no started campaign {each.number} of the name “{each.name}”; remove it here",
            )


def _left_out(document: config_yaml.Document) -> Iterator[Problem]:
    """Take the list of what a record's copy leaves out from a document, and yield each."""
    # Anything but a list is a key that no configuration has.
    paths = document.data.pop(HIDDEN) if isinstance(document.data.get(HIDDEN), list) else ()
    for path in paths:
        yield Problem(message="is left out of a record; enter it where it is needed", path=str(path)[:300])


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refused(f"The file is no text in UTF-8: line {line} has another byte. Save it as UTF-8.") from error


def _truths(data: Any, read: Any, path: tuple[str, ...] = ()) -> Iterator[FieldError]:
    """Yield where true or false stands in the place of a number: Pydantic reads them as 1 and 0.

    Args:
        data: what stands there.
        read: what it was read as.
    """
    if isinstance(data, bool) and not isinstance(read, bool):
        yield ".".join(path), f"must be a number, not {str(data).lower()}"
    elif isinstance(data, dict):
        for key, each in data.items():
            yield from _truths(each, dict(read).get(key), (*path, key))
    elif isinstance(data, list):
        for index, each in enumerate(data):
            yield from _truths(each, read[index], (*path, str(index)))


def _told(document: config_yaml.Document, path: str, message: str) -> Problem:
    if message == _UNKNOWN:
        key = path.rpartition(".")[2]
        near = get_close_matches(key, _keys() - {key}, n=1, cutoff=0.7)
        message = "is no key of this part; " + (f"do you mean “{near[0]}”?" if near else "remove it")
    return document.problem(path[:300], _FIXES.get(message, message))


@cache
def _keys() -> set[str]:
    """Return every key that a part can have."""
    schema: dict[str, Any] = json_schema()
    return {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", ())}


NAME: Final = "campaign.yaml"
MAX_YAML_BYTES: Final = 8 * 2**20
MAX_FILE_BYTES: Final = 512 * 2**20
_Read = Callable[[bytes], CampaignConfig]
_MAX_MEMBERS = 1000
_MAX_DIRECTORY_BYTES = 2**20
_FOLDER = "files"
_MAGIC = b"PK"
_PIECE = 2**20
# The first moment that a ZIP can name.
_DATE = (1980, 1, 1, 0, 0, 0)


def write(campaign: Campaign) -> tuple[str, Iterator[bytes]]:
    """Return the ending of a campaign's file, “.yaml” or “.zip”, and its bytes, a piece at a time.

    Raises:
        NotPossible: as `config_of` does.
    """
    setup = config_of(campaign)
    text = text_of(setup).encode()
    if setup.file is None:
        return ".yaml", iter([text])
    return ".zip", _archive(text, setup.file, campaign.catalog)


def _archive(text: bytes, uploaded: UploadedFile, catalog: Catalog) -> Iterator[bytes]:
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as made:
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(_entry(NAME), text)
            with archive.open(_entry(_stored_as(uploaded)), "w", force_zip64=True) as member:
                for piece in file_of(catalog):
                    member.write(piece)
        made.seek(0)
        while piece := made.read(_PIECE):
            yield piece


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info


def _stored_as(uploaded: UploadedFile) -> str:
    return f"{_FOLDER}/{uploaded.sha256}{PurePath(uploaded.name).suffix.lower()}"


@contextmanager
def opened(
    file: BinaryIO,
    neighbour: PurePath | None = None,
    tell: Tell | None = None,
    owner: User | None = None,
    kept: CampaignConfig | None = None,
) -> Iterator[tuple[CampaignConfig, IO[bytes] | None]]:
    """Yield the setup of a file, and the file of its objects if it has one, at its beginning.

    Args:
        file: `campaign.yaml`, or a ZIP with it.
        neighbour: where the file of the objects lies if it is not in a ZIP; None if it is nowhere else.
        tell, owner: as `config_in` has them.
        kept: what its campaign has now: the same file need not be sent again. See `config_in`, too.

    Raises:
        SetupError: with every problem found.
    """
    begin = file.read(len(_MAGIC))
    file.seek(0)
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as copy:
        read = partial(config_in, tell=tell, owner=owner, kept=kept)
        if begin == _MAGIC:
            config = _unpacked(file, copy, read)
        else:
            config = read(_limited(file))
            if kept and config.file is not None and config.file == kept.file:
                yield config, None
                return
            _keep_neighbour(config, copy, neighbour)
        copy.seek(0)
        yield config, None if config.file is None else copy


def _keep_neighbour(config: CampaignConfig, kept: IO[bytes], neighbour: PurePath | None) -> None:
    if config.file is None:
        return
    if neighbour is None:
        raise refused(f"is not here: send a ZIP with {NAME} and “{config.file.name}”", "file")
    try:
        with open(neighbour / config.file.name, "rb") as source:
            _keep(source, kept, config.file)
    except OSError as error:
        message = f"“{config.file.name}” cannot be read beside {NAME} ({error.strerror}); put it there, or use a ZIP"
        raise refused(message, "file.name") from error


def _unpacked(file: BinaryIO, kept: IO[bytes], read: _Read) -> CampaignConfig:
    try:
        # Its members are only listed: the size that it states of one may be a lie.
        with sampler.archive_in(file, _MAX_MEMBERS, _MAX_DIRECTORY_BYTES) as archive:
            if NAME not in archive.namelist():
                raise refused(f"The ZIP has no {NAME}. Put it at the top, not in a folder.")
            with archive.open(NAME) as member:
                setup = read(_limited(member))
            if setup.file is not None:
                with archive.open(_member_of(archive, setup.file)) as member:
                    _keep(member, kept, setup.file)
            return setup
    except SetupError:
        raise
    except sampler.TooLargeError as error:
        message = f"The ZIP has more than {_MAX_MEMBERS} files, or very long names. It holds {NAME} and one more."
        raise refused(message) from error
    except sampler.ArchiveError as error:
        raise refused(str(error)) from error
    except sampler.BROKEN_ARCHIVE as error:
        if isinstance(error, OSError) and is_no_room(error):
            raise
        raise refused("The ZIP is broken or encrypted. Pack it again.") from error


def _member_of(archive: zipfile.ZipFile, uploaded: UploadedFile) -> str:
    wanted = [_stored_as(uploaded)] if uploaded.sha256 else []
    for name in (*wanted, uploaded.name):
        if name in archive.namelist():
            return name
    message = f"is not in the ZIP; put it in as {' or '.join(f'“{name}”' for name in (*wanted, uploaded.name))}"
    raise refused(message, "file")


def _keep(source: IO[bytes], kept: IO[bytes], uploaded: UploadedFile) -> None:
    """Copy a file, and check that it is the one that is meant."""
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise refused(f"must be at most {MAX_FILE_BYTES // 2**20} MiB large; split it", "file")
        digest.update(piece)
        kept.write(piece)
    if uploaded.sha256 not in (None, digest.hexdigest()):
        message = f"is of another file: “{uploaded.name}” has {digest.hexdigest()}; correct it, or leave it out"
        raise refused(message, "file.sha256")


def _limited(file: IO[bytes] | BinaryIO) -> bytes:
    content = file.read(MAX_YAML_BYTES + 1)
    if len(content) > MAX_YAML_BYTES:
        raise refused(f"{NAME} is larger than {MAX_YAML_BYTES // 2**20} MiB. Was another file meant?")
    return content


def config_of(campaign: Campaign) -> CampaignConfig:
    """Return the configuration of a campaign as its owner has it; of one that was extended, as it stands now.

    Raises:
        NotPossible: its uploaded file is gone.
    """
    config = campaign.typed_config
    if config.file is not None:
        catalog = Catalog.objects.filter(campaign=campaign).first()
        if catalog is None:
            raise NotPossible("The campaign has no uploaded file.")
        if not catalog.file.storage.exists(str(catalog.file.name)):
            raise NotPossible("The uploaded file of the campaign is gone from the server's disk.")
    # Nobody sees a seed before the end.
    return config.model_copy(update={"seed": None}) if campaign.hides_seed else config


def text_of(config: CampaignConfig) -> str:
    """Return `campaign.yaml`. What is empty or not given is left out, unless it would be read as something else. All
    else is written, so that nothing changes should a later version have other defaults.
    """
    changed = config.model_dump(mode="json", exclude_defaults=True)
    return config_yaml.write(_without_empty(config.model_dump(mode="json"), changed))


def file_of(catalog: Catalog) -> Iterator[bytes]:
    """Yield the bytes of an uploaded file, a piece at a time.

    Raises:
        FileNotFoundError: it is gone.
    """
    with catalog.file.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _without_empty(value: Any, changed: Any) -> Any:
    """Leave out of plain data what is empty; not so what somebody has emptied, which stands among what was changed."""
    if isinstance(value, dict):
        changed = changed if isinstance(changed, dict) else {}
        kept = {key: _without_empty(each, changed.get(key)) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {}) or changed.get(key) == []}
    if isinstance(value, list):
        changed = changed if isinstance(changed, list) else [None] * len(value)
        return [_without_empty(each, at) for each, at in zip(value, changed, strict=True)]
    return value
