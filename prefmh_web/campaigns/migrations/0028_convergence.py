import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What is measured of objects is kept, so that pages which follow chains need not measure them again."""

    dependencies = [("campaigns", "0027_pilots")]

    operations = [
        migrations.CreateModel(
            name="Measured",
            fields=[
                (
                    "state",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="measured",
                        serialize=False,
                        to="campaigns.state",
                    ),
                ),
                ("numbers", models.JSONField()),
            ],
        ),
    ]
