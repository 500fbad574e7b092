"""Where the pages are."""

from django.contrib import admin
from django.urls import path

from shop import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("orders", views.place),
    path("receipts/<str:number>", views.receipt),
]
