"""Horai makes things happen at their time, exactly as often as intended, and can say why."""

__version__ = "0.1.0"
