from django.contrib.auth.views import LogoutView
from django.urls import path

from prefmh_web.accounts import views

app_name = "accounts"
urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-in/by-link/", views.SignInByLink.as_view(), name="sign-in-by-link"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
]
