from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "prefmh_web.demo"
