"""The types of variables in the environment: each reads one text, and says what it should look like."""

import ipaddress
import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from limits import parse
from pydantic import AfterValidator, BeforeValidator

from prefmh_web.settings.rates import RATES

# Commas within quotation marks belong to a command, those between commands stand outside them.
_COMMANDS = re.compile(r"""(?:[^,"']|"(?:\\.|[^"\\])*"|'[^']*')+""")
_SCORER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def demand_scheme(schemes: tuple[str, ...]) -> AfterValidator:
    """Return a check that an address starts with one of these schemes."""

    def check(url: str) -> str:
        if urlsplit(url).scheme not in schemes:
            # The address itself may hold a password and stays out of the message.
            raise ValueError(f"must start with one of {', '.join(f'{each}://' for each in schemes)}")
        return url

    return AfterValidator(check)


def address_of_a_site(url: str) -> str:
    """Return scheme and host of an address.

    Raises:
        ValueError: it is none, or has more than these.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"must be an address such as https://prefmh.example, not {url!r}")
    return f"{parts.scheme}://{parts.netloc}"


def _count(given: Any) -> Any:
    text = str(given).strip()
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"must be a whole number, not {given!r}")
    return int(text)


def _seconds(given: Any) -> Any:
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"must be a number of seconds above 0, not {given!r}")
    return seconds


def _amount(given: Any) -> Any:
    try:
        amount = float(given)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise ValueError(f"must be an amount of money such as 50 or 12.50, without a currency, not {given!r}")
    return amount


def _names(given: Any) -> Any:
    return tuple(part.strip() for part in given.split(",") if part.strip()) if isinstance(given, str) else given


def _networks(given: Any) -> Any:
    try:
        return tuple(ipaddress.ip_network(part, strict=False) for part in _names(given))
    except ValueError as error:
        raise ValueError(f"must hold addresses or networks such as 10.0.0.0/8: {error}") from None


def _pairs(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    found = {}
    for part in _names(given):
        key, equals, values = part.partition("=")
        if not (equals and key.strip() and values.split()):
            raise ValueError(f"must look like NAME=value value, NAME=value; “{part}” does not")
        found[key.strip()] = values.split()
    return found


def _rates(given: Any) -> Any:
    found = {rate: " ".join(words) for rate, words in _pairs(given).items()} if isinstance(given, str) else given
    for rate, limit in found.items():
        if rate not in RATES:
            raise ValueError(f"has no rate “{rate}”; there are {', '.join(RATES)}")
        if not _is_rate(limit):
            raise ValueError(f"must hold rates such as join=5000/minute, not “{limit}”")
    return found


def _is_rate(given: str) -> bool:
    try:
        return ";" not in given and parse(given).amount > 0
    except ValueError:
        return False


def _folders(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    folders: dict[str, Path] = {}
    for part in _names(given):
        name, equals, folder = (piece.strip() for piece in part.partition("="))
        if not (name and equals and folder):
            raise ValueError(f'must read "name=folder,name2=folder2"; it has {part!r}')
        if name in folders:
            raise ValueError(f"must not name a model twice; it does {name!r}")
        folders[name] = Path(folder)
    return folders


def _commands(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    commands: dict[str, tuple[str, ...]] = {}
    parts = _COMMANDS.findall(given)
    if given.count(",") != sum(part.count(",") for part in parts) + max(0, len(parts) - 1):
        raise ValueError("has a comma that separates nothing, or a quotation mark that is not closed")
    for part in parts:
        # The command may hold a key, and stays out of the messages.
        name, equals, command = (piece.strip() for piece in part.partition("="))
        if not (equals and _SCORER_NAME.fullmatch(name)):
            raise ValueError(
                'must read "name=command,name2=command2"; a name begins with a letter and has at most 40 letters, '
                "digits, - and _"
            )
        if name in commands:
            raise ValueError(f"must not name a scorer twice; it does {name!r}")
        try:
            commands[name] = tuple(shlex.split(command))
        except ValueError:
            raise ValueError(f"has a quotation mark that is not closed, in the command of {name!r}") from None
        if not commands[name]:
            raise ValueError(f"has no command for {name!r}")
    return commands


Commands = Annotated[Mapping[str, tuple[str, ...]], BeforeValidator(_commands)]
"""Programs by name, each with its arguments: name=command,name2=command2. No shell reads them."""
Count = Annotated[int, BeforeValidator(_count)]
"""A whole number that is not negative."""
Amount = Annotated[float, BeforeValidator(_amount)]
"""A number that is not negative; it may have decimals."""
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""Texts with commas between them."""
Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
"""Addresses and networks with commas between them."""
Pairs = Annotated[Mapping[str, list[str]], BeforeValidator(_pairs)]
"""NAME=value value, NAME=value."""
Rates = Annotated[Mapping[str, str], BeforeValidator(_rates)]
"""Rates by name, such as join=5000/minute."""
Folders = Annotated[Mapping[str, Path], BeforeValidator(_folders)]
"""Folders by name: name=folder,name2=folder2."""
Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A number above zero; it may have decimals."""
