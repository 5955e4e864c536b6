"""manage.py verify RECORD.zip: what a record proves, what it only claims, and where it differs."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

import sampler


class Command(BaseCommand):
    """Exits with 1 when the record differs, with 2 when something cannot be read."""

    help = "Check a record against its hashes and against itself; exit non-zero where it differs."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("record", help="the ZIP downloaded from a campaign's page")

    def handle(self, *args: object, record: str, **options: object) -> None:
        try:
            found = sampler.verify(Path(record))
        except sampler.RecordError as error:
            raise CommandError(str(error), returncode=2) from error
        for line in found.lines():
            self.stdout.write(line)
        if found.differs:
            raise CommandError("The record is refused.", returncode=1)
