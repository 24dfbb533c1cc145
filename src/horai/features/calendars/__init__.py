"""Calendars: named holidays, make-up working days, weekends and business hours, shared by jobs."""

from horai.features.feature import Feature

FEATURE = Feature("calendars", routes=("routes",))
