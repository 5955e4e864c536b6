import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='endpoints', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=120)),
                ('base_url', models.CharField(help_text='as in https://api.example.com/v1', max_length=500)),
                ('model', models.CharField(help_text="the model's name on that server", max_length=200)),
                ('dialect', models.CharField(choices=[('openai', 'OpenAI or alike'), ('vllm', 'vLLM'), ('llama.cpp', 'llama.cpp'), ('sglang', 'SGLang'), ('ollama', 'Ollama'), ('openai-reasoning', 'OpenAI, models that reason'), ('azure', 'Azure OpenAI'), ('azure-reasoning', 'Azure OpenAI, models that reason'), ('openrouter', 'OpenRouter'), ('anthropic', 'Anthropic'), ('gemini', 'Gemini'), ('program', 'A program of your own')], default='openai', max_length=20)),
                ('dialect_is_declared', models.BooleanField(default=False)),
                ('api_key_variable', models.CharField(blank=True, max_length=100)),
                ('concurrency', models.PositiveSmallIntegerField(default=128, help_text='most requests at a time', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1024)])),
                ('requests_per_minute', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)])),
                ('tokens_per_minute', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000)])),
                ('timeout_s', models.PositiveSmallIntegerField(default=60, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(600)])),
                ('input_price', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)])),
                ('output_price', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000000)])),
                ('thinking_tokens', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100000)])),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tested_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('can_constrain', models.BooleanField(editable=False, null=True)),
                ('can_log_probabilities', models.BooleanField(editable=False, null=True)),
                ('can_token_ids', models.BooleanField(editable=False, null=True)),
                ('can_images', models.BooleanField(editable=False, null=True)),
                ('can_vary', models.BooleanField(editable=False, null=True)),
                ('samples_untruncated', models.BooleanField(editable=False, null=True)),
                ('sampling_evidence', models.CharField(blank=True, editable=False, max_length=300)),
                ('context_tokens', models.PositiveIntegerField(editable=False, null=True)),
                ('profile', models.JSONField(blank=True, default=dict, editable=False)),
                ('failures', models.PositiveIntegerField(default=0, editable=False)),
                ('open_until', models.DateTimeField(editable=False, null=True)),
                ('last_error', models.CharField(blank=True, editable=False, max_length=300)),
                ('last_error_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'ordering': ('name', 'pk'),
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='endpoint_name_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='EndpointTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tests', to='endpoints.endpoint')),
                ('begun_at', models.DateTimeField(auto_now_add=True)),
                ('status', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped')], default='running', max_length=8)),
                ('reason', models.CharField(blank=True, max_length=300)),
                ('until', models.DateTimeField(null=True)),
                ('requests', models.PositiveIntegerField(default=0)),
                ('report', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'ordering': ('pk',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('endpoint',), name='endpoint_tested_once')],
            },
        ),
        migrations.CreateModel(
            name='Usage',
            fields=[
                ('requests', models.PositiveBigIntegerField(default=0)),
                ('failed', models.PositiveBigIntegerField(default=0)),
                ('unreadable', models.PositiveBigIntegerField(default=0)),
                ('unpriced', models.PositiveBigIntegerField(default=0)),
                ('tokens_in', models.PositiveBigIntegerField(default=0)),
                ('tokens_out', models.PositiveBigIntegerField(default=0)),
                ('seconds', models.FloatField(default=0)),
                ('cost', models.FloatField(default=0)),
                ('endpoint', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='endpoints.endpoint')),
            ],
            options={
                'abstract': False,
            },
        ),
    ]
