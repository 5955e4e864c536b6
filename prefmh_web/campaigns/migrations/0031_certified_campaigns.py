from django.db import migrations, models


class Migration(migrations.Migration):
    """A certified campaign publishes the hash of its seed at the start, and the seed at the end."""

    dependencies = [("campaigns", "0030_webhooks")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="is_certified",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="campaign",
            name="seed_hash",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="campaign",
            name="seed_salt",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="campaign",
            name="seed_told_at",
            field=models.DateTimeField(null=True),
        ),
    ]
