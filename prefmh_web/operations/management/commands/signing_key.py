"""manage.py signing_key: the keys that sign this site's records."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from prefmh_web.campaigns.record import keys


class Command(BaseCommand):
    """Exits with 1 when the file of keys cannot be used."""

    help = "List the keys that sign this site's records; with --rotate, replace the one that signs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--rotate",
            action="store_true",
            help="make a new key; the old one stays published, so that its records can still be verified",
        )

    def handle(self, *args: object, rotate: bool, **options: object) -> None:
        try:
            if rotate:
                keys.rotate()
            found = keys.public_keys()
        except keys.UnusableKeysError as error:
            raise CommandError(str(error)) from error
        for key in found:
            until = f"to {key.retired_at}" if key.retired_at else "signs now"
            self.stdout.write(f"{key.fingerprint}  made {key.made_at}  {until}")
