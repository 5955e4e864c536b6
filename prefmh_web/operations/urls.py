from django.urls import path

from prefmh_web.operations import views

app_name = "operations"
urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path(".well-known/prefmh-keys.json", views.keys, name="keys"),
    path("metrics", views.metrics_page, name="metrics"),
]
