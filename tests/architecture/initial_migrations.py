"""Write each app's one migration anew from its models: `python -m tests.architecture.initial_migrations`.

Until 1.0 no database is owed an upgrade: an app has one migration, and every change of a model writes it again. Unlike
`makemigrations`, this puts constraints and indexes inside `CreateModel`; added afterwards, each makes SQLite copy the
whole table.
"""

import os
from graphlib import TopologicalSorter

import django

APPS = ("accounts", "campaigns", "endpoints", "experiments", "participants")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
    django.setup()
    from django.apps import apps
    from django.db import migrations
    from django.db.migrations.operations import CreateModel
    from django.db.migrations.state import ModelState
    from django.db.migrations.writer import MigrationWriter

    for label in APPS:
        models = {model._meta.model_name: model for model in apps.get_app_config(label).get_models()}
        needed, depends_on = {}, set()
        for name, model in models.items():
            targets = [
                field.related_model for field in model._meta.get_fields() if field.concrete and field.is_relation
            ]
            needed[name] = [
                target._meta.model_name for target in targets if target is not model and target in models.values()
            ]
            depends_on |= {target._meta.app_label for target in targets} - {label}
        operations = []
        for name in TopologicalSorter(needed).static_order():
            state = ModelState.from_model(models[name])
            options = {
                key: value for key, value in state.options.items() if value or key not in ("indexes", "constraints")
            }
            operations.append(CreateModel(state.name, list(state.fields.items()), options, state.bases, state.managers))
        migration = migrations.Migration("0001_initial", label)
        migration.initial = True
        migration.operations = operations
        migration.dependencies = [
            migrations.swappable_dependency("auth.User") if each == "auth" else (each, "0001_initial")
            for each in sorted(depends_on)
        ]
        writer = MigrationWriter(migration, include_header=False)
        with open(writer.path, "w", encoding="utf-8") as file:
            file.write(writer.as_string())


if __name__ == "__main__":
    main()
