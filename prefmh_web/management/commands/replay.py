"""manage.py replay EXPORT.zip: recompute every verdict from an export alone."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

import sampler

_SHOWN = 20


class Command(BaseCommand):
    """Exits with 1 when a verdict, a draw or a sample differs, with 2 when the file cannot be read."""

    help = "Recompute every verdict of an exported campaign from the ZIP alone; exit non-zero on a difference."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("export", help="the ZIP downloaded from a campaign's page")

    def handle(self, *args: object, export: str, **options: object) -> None:
        found = self._replay(export)
        for difference in found.differences[:_SHOWN]:
            self.stdout.write(f"DIFFERENT  {difference}")
        if len(found.differences) > _SHOWN:
            self.stdout.write(f"and {len(found.differences) - _SHOWN} more")
        evidence = f"{found.ratings} ratings" if found.ratings else f"{found.votes} votes"
        evidence = f"{found.scores} scores" if found.scores else evidence
        summary = f"{found.verdicts} verdicts recomputed from {evidence}"
        if found.differences:
            raise CommandError(
                f"{summary}: {len(found.differences)} difference{pluralize(len(found.differences))}.", returncode=1
            )
        self.stdout.write(self.style.SUCCESS(f"{summary}: all agree."))
        if found.is_sealed:
            self.stdout.write("Draws wait for the seed, which the record tells once the campaign has ended.")

    def _replay(self, export: str) -> sampler.Replay:
        try:
            return sampler.replay_file(Path(export))
        except (sampler.RecordError, sampler.ConfigError) as error:
            raise CommandError(str(error), returncode=2) from error
