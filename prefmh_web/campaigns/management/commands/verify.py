"""manage.py verify RECORD.zip: what a record proves, what it only claims, and where it differs."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

import sampler


class Command(BaseCommand):
    """Exits with 1 when the record differs or the key has not signed it, with 2 when something cannot be read."""

    help = "Check a record against its signature and against itself; exit non-zero where it differs."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("record", help="the ZIP downloaded from a campaign's page")
        parser.add_argument(
            "--key",
            metavar="FILE|FINGERPRINT",
            help="which key must have signed it: the site's prefmh-keys.json, public keys as PEM, or a fingerprint",
        )

    def handle(self, *args: object, record: str, key: str | None, **options: object) -> None:
        try:
            found = sampler.verify(Path(record), None if key is None else sampler.keys_of(key))
        except (sampler.RecordError, sampler.KeyFileError) as error:
            raise CommandError(str(error), returncode=2) from error
        for line in found.lines():
            self.stdout.write(line)
        if found.differs:
            raise CommandError("The record is refused.", returncode=1)
