"""How many slots the schedules of very many jobs will have in each minute of the coming days.

| module    | promise                                                                                   |
|-----------|-------------------------------------------------------------------------------------------|
| minutes   | the fires of one schedule, minute by minute, exactly as walking from fire to fire finds them |
| crowds    | the same for crowds of jobs that fire alike, added up, with their jitter and their bounds   |
| peaks     | the minutes that stand out, and the jitter that would level them                            |
"""

from horai.features.feature import Feature
from horai.features.forecast.crowds import Crowd, Forecast, Share, forecast
from horai.features.forecast.minutes import ForecastWindow, fires_per_minute, window_after
from horai.features.forecast.peaks import HotSpot, hot_spots

__all__ = [
    "FEATURE",
    "Crowd",
    "Forecast",
    "ForecastWindow",
    "HotSpot",
    "Share",
    "fires_per_minute",
    "forecast",
    "hot_spots",
    "window_after",
]

FEATURE = Feature("forecast", routes=("routes", "routes_minute"))
