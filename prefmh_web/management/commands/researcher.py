"""manage.py researcher NAME: an account that may make campaigns, with a password or a link to sign in."""

from getpass import getpass

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from prefmh_web.accounts.models import make_researcher, sign_in_path


def new_account(name: str):
    """Return an account that is not stored yet, and has no password.

    Raises:
        CommandError: no account can have this name.
    """
    user = get_user_model()(username=name)
    try:
        user.clean_fields(exclude=("password",))
    except ValidationError as error:
        raise CommandError(f"{name!r} cannot be a user name: {' '.join(error.messages)}") from error
    user.set_unusable_password()
    return user


class Command(BaseCommand):
    """Makes the account if there is none; an account that exists becomes a researcher's and keeps its password."""

    help = (
        "Create or promote the researcher NAME. Asks for a password, or prints a sign-in link that is valid for a day."
    )

    def add_arguments(self, parser):
        parser.add_argument("name")
        parser.add_argument("--link", action="store_true", help="print a link instead of asking for a password")
        parser.add_argument(
            "--member", action="store_true", help="create an account that sees only the campaigns it is added to"
        )

    def handle(self, *args, name, link, member, **options):
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            user = new_account(name)
            if not link:
                user.set_password(self._password(user))
            user.save()
        if not member:
            make_researcher(user)
        self.stdout.write(f"{name} {'can sign in' if member else 'can create campaigns'}.")
        if link:
            site = getattr(settings, "SITE_URL", None) or ""
            self.stdout.write(f"Sign-in link for {name}, valid for a day: {site}{sign_in_path(user)}")

    def _password(self, user) -> str:
        # Asked for, never an argument: the command line is in the shell's history and in every process list.
        try:
            password, again = getpass(f"Password for {user.username}: "), getpass("Password again: ")
        except EOFError as error:
            raise CommandError("Nobody types a password here: ask for a --link. Nothing was changed.") from error
        if password != again:
            raise CommandError("The two passwords differ. Nothing was changed.")
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(f"{' '.join(error.messages)} Nothing was changed.") from error
        return password
