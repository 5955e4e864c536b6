"""Files of a form that could not be saved: they stand in it again, without being chosen once more."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from prefmh_web.campaigns.catalogs import kept
from prefmh_web.campaigns.catalogs.kept import Kept

_PREFIX = "kept-"


class KeptFileInput(forms.FileInput):
    """A file to choose; of one that is kept, its name and its ticket stand below."""

    kept: Kept | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the field."""
        field = super().render(name, value, attrs, renderer)
        if self.kept is None:
            return field
        return format_html(
            '{}<p class="kept"><strong>{}</strong>, kept. To use another file, choose it here.</p>'
            '<input type="hidden" name="{}" value="{}">',
            field,
            self.kept.filename,
            _PREFIX + name,
            self.kept.ticket,
        )


class KeptFiles:
    """The files of a form, with those that are kept of an earlier try.

    Args:
        researcher_id: who sends the form.
        posted: its fields.
        files: what was chosen now, by the names of the fields. What was kept is added: with its request, it is closed.
    """

    def __init__(self, researcher_id: int, posted: Mapping[str, str], files: MutableMapping[str, Any]):
        self._researcher_id = researcher_id
        self._kept: dict[str, Kept] = {}
        self.files = files
        for field, ticket in posted.items():
            name = field.removeprefix(_PREFIX)
            if field.startswith(_PREFIX) and name not in self.files:
                self._open(name, ticket)

    def _open(self, name: str, ticket: str) -> None:
        found = kept.by_ticket(self._researcher_id, ticket)
        if found is None:
            return
        try:
            self.files[name] = found.open()
        except FileNotFoundError:
            # Swept in this very moment: the form asks for the file, as if there had been none.
            return
        self._kept[name] = found

    def show_in(self, form: forms.Form) -> None:
        """Keep the files of a form that is shown again, but for those that are refused; the form says which."""
        for bound in form:
            name, widget = bound.html_name, bound.field.widget
            if isinstance(widget, KeptFileInput) and name in self.files and not bound.errors:
                if name not in self._kept:
                    self._kept[name] = kept.keep(self._researcher_id, self.files[name])
                widget.kept = self._kept[name]
                # The browser has it no more, and need not insist on it.
                bound.field.required = False

    def remove(self) -> None:
        """Remove what is kept: it is stored elsewhere now."""
        for each in self._kept.values():
            each.remove()
