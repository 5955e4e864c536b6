import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import prefmh_web.campaigns.models.webhooks


class Migration(migrations.Migration):
    """Programs that are told what happens in a campaign, what they are to be told, and what came of it."""

    dependencies = [("campaigns", "0029_programs")]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=500)),
                ("events", models.JSONField(default=list)),
                ("salt", models.CharField(default=prefmh_web.campaigns.models.webhooks.new_salt, max_length=32)),
                ("previous_salt", models.CharField(blank=True, default="", max_length=32)),
                ("previous_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("looked_until", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="webhooks", to="campaigns.campaign"
                    ),
                ),
            ],
            options={"ordering": ("pk",)},
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event_id", models.UUIDField(default=uuid.uuid4)),
                ("event", models.CharField(max_length=24)),
                ("once", models.CharField(max_length=80, null=True)),
                ("told", models.JSONField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "status",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("given-up", "given up")],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="campaigns.webhook"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ("-pk",),
                "indexes": [
                    models.Index(condition=models.Q(("status", "waiting")), fields=["due_at"], name="delivery_waiting")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("webhook", "event_id"), name="delivery_once_per_webhook"),
                    models.UniqueConstraint(fields=("webhook", "once"), name="delivery_once_noticed"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("code", models.PositiveSmallIntegerField(null=True)),
                ("reply", models.CharField(blank=True, default="", max_length=1000)),
                ("problem", models.CharField(blank=True, default="", max_length=500)),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attempts", to="campaigns.delivery"
                    ),
                ),
            ],
            options={"ordering": ("pk",)},
        ),
    ]
