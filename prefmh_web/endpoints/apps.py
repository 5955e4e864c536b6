from django.apps import AppConfig


class EndpointsConfig(AppConfig):
    name = "prefmh_web.endpoints"
