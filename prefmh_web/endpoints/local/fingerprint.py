"""Which weights these are: a hash of the files that decide what a model answers."""

from hashlib import sha256
from pathlib import Path

# Weights, configurations, tokenisers and chat templates; a README or a licence may change.
_DECIDE = {".safetensors", ".json", ".jinja", ".model", ".txt"}
_AT_ONCE = 1 << 24


def fingerprint_of(folder: Path) -> str:
    """Return the SHA-256 of a model's files, names included: another weight, template or token gives another one.

    Reads every file, which takes seconds for each 10 GB.

    Raises:
        OSError: a file cannot be read.
    """
    whole = sha256()
    for path in _files(folder):
        own = sha256()
        with path.open("rb") as file:
            while chunk := file.read(_AT_ONCE):
                own.update(chunk)
        whole.update(f"{path.name}\0{own.hexdigest()}\n".encode())
    return whole.hexdigest()


def stamp_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the same files: another one means that they were written meanwhile.

    Raises:
        OSError: a file cannot be looked at.
    """
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _DECIDE and path.is_file())
