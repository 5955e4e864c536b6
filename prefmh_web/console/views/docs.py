"""The documentation, served with the site."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from prefmh_web.console.views.common import get_page
from prefmh_web.participants.markdown import rendered


@get_page
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one file of the documentation. Its address ends like the file's name, so links between the files work."""
    names = sorted(each.stem for each in settings.DOCS_DIR.glob("*.md"))
    if name not in names:
        raise Http404("There is no such page.")
    text = (settings.DOCS_DIR / f"{name}.md").read_text(encoding="utf-8")
    return render(request, "console/docs.html", {"name": name, "names": names, "text": rendered(text)})
