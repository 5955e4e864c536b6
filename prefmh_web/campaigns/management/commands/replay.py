"""manage.py replay EXPORT.zip: recompute every verdict from an export alone."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator

from django.core.management.base import BaseCommand, CommandError

import sampler
from prefmh_web.campaigns.export import RECIPE

_SHOWN = 20


class Command(BaseCommand):
    """Exits with 1 when a verdict, a draw or a sample differs, with 2 when the file cannot be read."""

    help = "Recompute every verdict of an exported campaign from the ZIP alone; exit non-zero on a difference."
    requires_system_checks = ()

    def add_arguments(self, parser):
        parser.add_argument("export", help="the ZIP downloaded from a campaign's page")

    def handle(self, *args, export, **options):
        found = self._replay(export)
        for difference in found.differences[:_SHOWN]:
            self.stdout.write(f"DIFFERENT  {difference}")
        if len(found.differences) > _SHOWN:
            self.stdout.write(f"and {len(found.differences) - _SHOWN} more")
        summary = f"{found.verdicts} verdicts recomputed from {found.votes} votes"
        if found.differences:
            raise CommandError(f"{summary}: {len(found.differences)} differences.", returncode=1)
        self.stdout.write(self.style.SUCCESS(f"{summary}: all agree."))

    def _replay(self, export: str) -> sampler.Replay:
        try:
            with zipfile.ZipFile(export) as archive:
                recipe = json.loads(archive.read(RECIPE))
                tables = {name: _rows(archive, f"{name}.csv") for name in ("states", "steps", "votes", "samples")}
                return sampler.replay(recipe, **tables)
        except KeyError as error:
            raise CommandError(f"{export} is no whole export: {error.args[0]}", returncode=2) from error
        except (OSError, zipfile.BadZipFile, ValueError) as error:
            raise CommandError(f"{export} cannot be read: {error}", returncode=2) from error


def _rows(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, str]]:
    # Opened here, so that a missing file is told before any is read.
    archive.getinfo(name)

    def read() -> Iterator[dict[str, str]]:
        with archive.open(name) as entry:
            yield from csv.DictReader(io.TextIOWrapper(entry, encoding="utf-8", newline=""))

    return read()
