import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Leases come from the app `annotate`; their table stays as it is."""

    dependencies = [
        ("annotate", "0001_initial"),
        ("campaigns", "0011_recipes_of_version_2"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Lease',
                    fields=[
                        ('key', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                        ('proposal_side', models.CharField(choices=[('left', 'Left'), ('right', 'Right')], max_length=5)),
                        ('issued_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('is_orphan', models.BooleanField(default=False)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('ending', models.CharField(choices=[('voted', 'Voted'), ('skipped', 'Skipped'), ('expired', 'Expired')], max_length=7, null=True)),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='campaigns.annotator')),
                        ('comparison', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='campaigns.comparison')),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='campaigns.judge')),
                    ],
                    options={
                        'db_table': 'annotate_lease',
                        'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['expires_at'], name='lease_live')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('annotator',), name='lease_one_live_per_annotator'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ending__isnull', True)), models.Q(('ended_at__isnull', False), ('ending__isnull', False)), _connector='OR'), name='lease_ending_whole')],
                    },
                ),
            ]
        )
    ]
