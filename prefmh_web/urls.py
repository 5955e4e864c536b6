from django.urls import include, path

urlpatterns = [
    path("", include("prefmh_web.operations.urls")),
    path("", include("prefmh_web.console.urls")),
    path("", include("prefmh_web.annotate.urls")),
    path("accounts/", include("prefmh_web.accounts.urls")),
]
