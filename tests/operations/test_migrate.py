"""A new database is made from the models: the same one that the migrations make, and later migrations apply to it."""

from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.core.management.commands import migrate as django_migrate
from django.db import connection, connections

from prefmh_web.campaigns import migrations

_LATER = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("campaigns", "0001_initial")]
    operations = [
        migrations.RenameField("campaign", "name", "title"),
        migrations.AddField("campaign", "rank", models.IntegerField(default=7)),
        migrations.AddConstraint(
            "campaign", models.CheckConstraint(condition=models.Q(rank__gt=0), name="rank_above_0")
        ),
    ]
"""


@contextmanager
def _empty_database(folder: Path, alias: str):
    name = f"{alias}_{folder.name.replace('-', '_')}".lower()
    if connection.vendor == "sqlite":
        name = str(folder / name)
    else:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    connections.databases[alias] = connection.settings_dict | {"NAME": name}
    try:
        yield alias
    finally:
        connections[alias].close()
        if connection.vendor != "sqlite":
            connections[alias].close_pool()
            with connection._nodb_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
        del connections[alias], connections.databases[alias]


def _described(alias: str) -> dict:
    """Return each table's columns and constraints, with all that the database says of them but their order.

    Without the tables of Django's accounts: its migrations make some ids wider than its models say.
    """
    look = connections[alias].introspection
    with connections[alias].cursor() as cursor:
        return {
            table: (
                sorted(map(str, look.get_table_description(cursor, table))),
                sorted(map(str, look.get_constraints(cursor, table).items())),
            )
            for table in look.table_names(cursor)
            if not table.startswith("auth_")
        }


def test_a_database_made_from_the_models_is_what_the_migrations_make_and_takes_a_later_one(
    tmp_path, settings, monkeypatch, django_db_blocker
):
    with (
        django_db_blocker.unblock(),
        _empty_database(tmp_path, "modelled") as modelled,
        _empty_database(tmp_path, "migrated") as migrated,
    ):
        call_command("migrate", database=modelled, verbosity=0)
        call_command(django_migrate.Command(), database=migrated, verbosity=0)
        assert _described(modelled) == _described(migrated)

        package = tmp_path / "with_a_later_one"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "0001_initial.py").write_text((Path(migrations.__file__).parent / "0001_initial.py").read_text())
        (package / "0002_later.py").write_text(_LATER)
        monkeypatch.syspath_prepend(tmp_path)
        settings.MIGRATION_MODULES = {"campaigns": "with_a_later_one"}
        for alias in (modelled, migrated):
            call_command("migrate", database=alias, verbosity=0)
        after = _described(modelled)
        assert after == _described(migrated)
        columns, constraints = after["campaigns_campaign"]
        assert "'title'" in str(columns)
        assert "'rank'" in str(columns)
        assert "rank_above_0" in str(constraints)
