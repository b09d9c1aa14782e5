from django.apps import AppConfig


class TouchstoneConfig(AppConfig):
    name = "touchstone"
