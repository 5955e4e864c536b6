from django.apps import AppConfig


class AnnotateConfig(AppConfig):
    name = "prefmh_web.annotate"

    def ready(self) -> None:
        from prefmh_web.annotate import admission
        from prefmh_web.participants import erasing

        erasing.also_remove("sessions", admission.forget)
