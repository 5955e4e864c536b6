"""The languages that voters' pages can speak: English, and each that has a folder in `prefmh_web/locale`.

To add one: write `<code>/LC_MESSAGES/django.po` there and run `manage.py compilemessages`. Once a native speaker has
reviewed it, add its code to `REVIEWED`.
"""

from pathlib import Path

from django.conf.locale import LANG_INFO

SOURCE = "en"
REVIEWED = frozenset({SOURCE})


def languages_in(folder: Path) -> list[tuple[str, str]]:
    """Return codes with the names that researchers read, the source language first."""
    translated = sorted(file.parts[-3] for file in folder.glob("*/LC_MESSAGES/django.po"))
    return [(code, _name(code)) for code in (SOURCE, *translated)]


def _name(code: str) -> str:
    name: str = LANG_INFO[code]["name_local"]
    return name if code in REVIEWED else f"{name} (not reviewed by a native speaker yet)"
