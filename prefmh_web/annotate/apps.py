from django.apps import AppConfig


class AnnotateConfig(AppConfig):
    name = "prefmh_web.annotate"
