from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "prefmh_web.accounts"
