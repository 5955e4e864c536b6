from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "prefmh_web.accounts"

    def ready(self) -> None:
        post_migrate.connect(_make_group, sender=self, dispatch_uid="accounts.group")


def _make_group(using: str, **_: object) -> None:
    """Have the group of researchers in each new database, so that an admin can choose it."""
    from prefmh_web.accounts.roles import researchers

    researchers(using)
