from django.urls import include, path

from prefmh_web.api.site import api

urlpatterns = [
    path("", include("prefmh_web.operations.urls")),
    path("", include("prefmh_web.console.urls")),
    path("", include("prefmh_web.voting.urls")),
    path("accounts/", include("prefmh_web.accounts.urls")),
    path("api/", api.urls),
]
