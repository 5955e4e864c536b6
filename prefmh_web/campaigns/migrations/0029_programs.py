import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """Programs of researchers as judges: their tokens, and the questions that they hold."""

    dependencies = [
        ('campaigns', '0028_convergence'),
    ]

    operations = [
        migrations.AddField(
            model_name='judge',
            name='program',
            field=models.CharField(blank=True, db_default='', default='', max_length=120),
        ),
        migrations.AlterField(
            model_name='campaignevent',
            name='kind',
            field=models.CharField(choices=[('paused', 'Paused'), ('resumed', 'Resumed'), ('panel-ended', 'Panel Ended'), ('reminded', 'Reminded'), ('scorers-asked-again', 'Scorers Asked'), ('member-set', 'Member Set'), ('member-removed', 'Member Removed'), ('participants-set', 'Participants Set'), ('ids-deleted', 'Ids Deleted'), ('erased', 'Erased'), ('paid', 'Paid'), ('bonus-set', 'Bonus Set'), ('renamed', 'Renamed'), ('debriefing-set', 'Debriefing Set'), ('translations-set', 'Translations Set'), ('model-accepted', 'Model Accepted'), ('archived', 'Archived'), ('unarchived', 'Unarchived'), ('judge-token-made', 'Judge Token Made'), ('judge-token-withdrawn', 'Judge Token Withdrawn')], max_length=24),
        ),
        migrations.CreateModel(
            name='JudgeToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, db_default=django.db.models.functions.datetime.Now())),
                ('used_at', models.DateTimeField(null=True)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='campaigns.judge')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('withdrawn_at__isnull', True)), fields=('judge',), name='judge_token_one_live')],
            },
        ),
        migrations.CreateModel(
            name='ProgramLease',
            fields=[
                ('key', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('slot', models.PositiveIntegerField()),
                ('proposal_side', models.CharField(choices=[('left', 'Left'), ('right', 'Right')], max_length=5)),
                ('worker', models.CharField(blank=True, default='', max_length=60)),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('ending', models.CharField(choices=[('voted', 'Voted'), ('skipped', 'Skipped'), ('expired', 'Expired')], max_length=7, null=True)),
                ('comparison', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='program_leases', to='campaigns.comparison')),
                ('judge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='program_leases', to='campaigns.judge')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['judge', 'expires_at'], name='program_lease_live')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('comparison', 'judge', 'slot'), name='program_lease_once_per_slot'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ending__isnull', True)), models.Q(('ended_at__isnull', False), ('ending__isnull', False)), _connector='OR'), name='program_lease_ending_whole')],
            },
        ),
    ]
