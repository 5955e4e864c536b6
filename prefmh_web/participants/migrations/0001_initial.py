import django.db.models.deletion
import django.utils.timezone
import uuid
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
            name='Participant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participants', to=settings.AUTH_USER_MODEL)),
                ('recruiter', models.CharField(max_length=20)),
                ('external_id', models.CharField(max_length=100)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'recruiter', 'external_id'), name='participant_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='Participation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('participant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='participations', to='participants.participant')),
                ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='campaigns.campaign')),
                ('voter', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='campaigns.voter')),
                ('visits', models.JSONField(default=list)),
                ('arrived_at', models.DateTimeField(auto_now_add=True)),
                ('stage', models.CharField(choices=[('arrival', 'arrival'), ('questions', 'questions'), ('instructions', 'instructions'), ('practice', 'practice'), ('comprehension', 'comprehension'), ('votes', 'votes'), ('last-questions', 'last questions'), ('end', 'end')], default='arrival', max_length=20)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('consents', models.JSONField(default=list)),
                ('answers', models.JSONField(default=dict)),
                ('practice', models.JSONField(default=list)),
                ('placed_at', models.DateTimeField(null=True)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('waits_since', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(blank=True, choices=[('completed', 'completed'), ('nothing-left', 'nothing left to vote on'), ('no-consent', 'did not consent'), ('not-eligible', 'not eligible'), ('full', 'no place free'), ('not-understood', 'comprehension failed'), ('checks-failed', 'checks failed'), ('time-over', 'time over'), ('withdrawn', 'withdrew'), ('ended', 'ended by the researcher')], default='', max_length=20)),
                ('code', models.CharField(blank=True, default='', max_length=100)),
                ('pay', models.CharField(blank=True, choices=[('full', 'in full'), ('part', 'in part'), ('nothing', 'not')], default='', max_length=7)),
                ('bonus', models.DecimalField(decimal_places=2, max_digits=8, null=True)),
                ('paid_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('participant', 'campaign'), name='participation_once_per_campaign')],
            },
        ),
        migrations.CreateModel(
            name='AttentionCheck',
            fields=[
                ('key', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('participation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='participants.participation')),
                ('after_votes', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('instructed', 'Instructed'), ('gold', 'Gold'), ('repeat', 'Repeat')], default='instructed', max_length=10)),
                ('lease', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='campaigns.lease')),
                ('gold', models.PositiveSmallIntegerField(null=True)),
                ('is_swapped', models.BooleanField(default=False)),
                ('expected_side', models.CharField(blank=True, choices=[('first', 'First'), ('second', 'Second')], default='', max_length=6)),
                ('chosen_side', models.CharField(blank=True, choices=[('first', 'First'), ('second', 'Second')], default='', max_length=6)),
                ('elapsed_ms', models.PositiveIntegerField(null=True)),
                ('shown_at', models.DateTimeField()),
                ('answered_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('participation', 'after_votes'), name='check_once_after_each_vote')],
            },
        ),
    ]
