from django.db import migrations


class Migration(migrations.Migration):
    """The model moves to the app `campaigns`; its table stays as it is."""

    dependencies = [
        ("annotate", "0001_initial"),
        ("campaigns", "0012_leases"),
    ]

    operations = [migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Lease")])]
