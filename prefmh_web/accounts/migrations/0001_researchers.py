from django.conf import settings
from django.db import migrations


def owners_become_researchers(apps, schema_editor):
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name="researchers")
    owners = apps.get_model("campaigns", "Campaign").objects.order_by().values_list("owner", flat=True).distinct()
    group.user_set.add(*owners)


class Migration(migrations.Migration):
    """Whoever had campaigns before there were roles goes on making them."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("campaigns", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [migrations.RunPython(owners_become_researchers, migrations.RunPython.noop)]
