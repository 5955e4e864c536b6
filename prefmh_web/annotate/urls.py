from django.urls import path, re_path

from prefmh_web.annotate import views

_UUID = "-".join(f"[0-9a-f]{{{length}}}" for length in (8, 4, 4, 4, 12))

app_name = "annotate"
urlpatterns = [
    path("join/<str:token>/", views.welcome, name="welcome"),
    path("join/<str:token>/vote/", views.vote, name="vote"),
    path("join/<str:token>/withdraw/", views.withdraw, name="withdraw"),
    re_path(rf"^pairs/(?P<lease>{_UUID})/(?P<side>left|right)/$", views.picture, name="picture"),
]
