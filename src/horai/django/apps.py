"""The Django application: it brings the command `horai_worker`."""

from django.apps import AppConfig  # pyright: ignore[reportMissingTypeStubs]


class HoraiConfig(AppConfig):
    """Named in `INSTALLED_APPS` as `horai.django`."""

    name = "horai.django"
    label = "horai"
    verbose_name = "Horai"
