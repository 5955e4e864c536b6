import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A campaign may be the pilot of another one, whose plan its times and votes then feed."""

    dependencies = [("campaigns", "0026_changes_after_start")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="pilot_of",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="pilots",
                to="campaigns.campaign",
            ),
        ),
    ]
