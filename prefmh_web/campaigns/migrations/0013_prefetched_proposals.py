from django.db import migrations, models


class Migration(migrations.Migration):
    """New names for what is drawn ahead; tables and columns stay as they are."""

    dependencies = [("campaigns", "0012_leases")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Draft", "PrefetchedProposal"),
                migrations.AlterModelTable("PrefetchedProposal", "campaigns_draft"),
                migrations.AlterField(
                    "PrefetchedProposal",
                    "chain",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="prefetched_proposals", to="campaigns.chain"
                    ),
                ),
                migrations.RenameField("Chain", "foreseen", "prefetched"),
                migrations.AlterField(
                    "Chain", "prefetched", models.PositiveIntegerField(db_column="foreseen", default=0)
                ),
                migrations.RenameField("Chain", "foresees_until", "prefetches_until"),
                migrations.AlterField(
                    "Chain", "prefetches_until", models.DateTimeField(db_column="foresees_until", null=True)
                ),
            ]
        )
    ]
