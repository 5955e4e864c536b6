from django.apps import AppConfig


class EmbeddedConfig(AppConfig):
    name = "prefmh_web.embedded"
