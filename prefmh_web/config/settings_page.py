"""Every setting of a campaign as a page of Markdown, made of the same declarations as the form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from prefmh_web.config.campaign import json_schema

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} entries",
}
_HEADER = "| key | what it is | values | default | after the start |\n|---|---|---|---|---|\n"


def settings_page() -> str:
    """Return the page: a table for the whole and one for each part."""
    schema = json_schema()
    parts = {"campaign.yaml": schema} | schema["$defs"]
    found = (_part(name, part) for name, part in parts.items() if "properties" in part)
    return "# Settings of a campaign\n\n" + "\n".join(found)


def _part(name: str, part: dict[str, Any]) -> str:
    about = str(part.get("description", "")).split("\n\n")[0].replace("\n", " ")
    needed = part.get("required", ())
    rows = "".join(_row(key, each, is_needed=key in needed) for key, each in part["properties"].items())
    return f"## {name}\n\n{about}\n\n{_HEADER}{rows}"


def _row(key: str, field: dict[str, Any], *, is_needed: bool) -> str:
    told = ". ".join(filter(None, [str(field.get("title", "")), str(field.get("description", ""))]))
    # That of a part stands in the part's own table.
    default = "" if isinstance(field.get("default"), dict) else f"`{json.dumps(field.get('default'))}`"
    default = "must be given" if is_needed else default
    fixed = f"fixed: {field['x-fixed']}" if "x-fixed" in field else ""
    cells = (f"`{key}`", told, "; ".join(_values(field)), default, fixed)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def _values(field: dict[str, Any]) -> Iterator[str]:
    """Yield what a value can be: its type or its part, the words, the bounds."""
    for each in [field, *field.get("anyOf", ()), *field.get("oneOf", ())]:
        if "$ref" in each:
            yield f"[{each['$ref'].rpartition('/')[2]}](#{each['$ref'].rpartition('/')[2].lower()})"
        elif "enum" in each or "const" in each:
            yield " or ".join(f"`{word}`" for word in each.get("enum", [each.get("const")]))
        elif each.get("type") not in (None, "null"):
            yield {"array": "list", "object": "mapping", "string": "text"}.get(each["type"], each["type"])
        yield from (text.format(f"{each[name]:,}") for name, text in _BOUNDS.items() if name in each)
        if "items" in each:
            yield from (f"of {told}" for told in _values(each["items"]))
