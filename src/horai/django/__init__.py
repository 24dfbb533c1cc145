"""Horai behind Django's task framework: `horai.django.backend.HoraiBackend`, and `manage.py horai_worker`.

See docs/guides/django.md. Django's own `django.tasks` is used if it exists (Django 6), otherwise the package django-tasks.
"""
