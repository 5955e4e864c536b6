from django.urls import path, re_path

from prefmh_web.voting import views

_UUID = "-".join(f"[0-9a-f]{{{length}}}" for length in (8, 4, 4, 4, 12))

app_name = "voting"
urlpatterns = [
    path("join/<str:token>/", views.welcome, name="welcome"),
    path("join/<str:token>/vote/", views.vote, name="vote"),
    path("join/<str:token>/stage/", views.stage, name="stage"),
    re_path(
        r"^join/(?P<token>[^/]+)/practice/(?P<number>[0-9]{1,3})/(?P<side>first|second)/$",
        views.practice_picture,
        name="practice-picture",
    ),
    path("join/<str:token>/withdraw/", views.withdraw, name="withdraw"),
    path("join/<str:token>/report/<uuid:lease>/", views.report, name="report"),
    re_path(rf"^pairs/(?P<lease>{_UUID})/(?P<side>first|second)/$", views.picture, name="picture"),
]
