import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '__first__'),
        ('campaigns', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ExperimentCampaign',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('settings', models.CharField(max_length=64)),
                ('experiment', models.CharField(max_length=20)),
                ('method', models.CharField(max_length=40)),
                ('direction', models.CharField(blank=True, max_length=20)),
                ('seed', models.PositiveBigIntegerField()),
                ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='experiment', to='campaigns.campaign')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'settings', 'method', 'direction', 'seed'), name='experiment_campaign_once')],
            },
        ),
        migrations.CreateModel(
            name='EvaluationAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('requests', models.PositiveBigIntegerField(default=0)),
                ('failed', models.PositiveBigIntegerField(default=0)),
                ('unreadable', models.PositiveBigIntegerField(default=0)),
                ('unpriced', models.PositiveBigIntegerField(default=0)),
                ('tokens_in', models.PositiveBigIntegerField(default=0)),
                ('tokens_out', models.PositiveBigIntegerField(default=0)),
                ('seconds', models.FloatField(default=0)),
                ('cost', models.FloatField(default=0)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('settings', models.CharField(max_length=64)),
                ('role', models.CharField(max_length=20)),
                ('key', models.CharField(max_length=300)),
                ('method', models.CharField(max_length=40)),
                ('source', models.CharField(max_length=120)),
                ('value', models.FloatField(null=True)),
                ('replies', models.PositiveIntegerField(default=0)),
                ('asked', models.PositiveIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'settings', 'key'), name='evaluation_answer_once')],
            },
        ),
    ]
