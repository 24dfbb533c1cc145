"""A forecast of the number of slots of very many jobs in each minute of the coming days.

| module         | contents                                                                                      |
|----------------|-----------------------------------------------------------------------------------------------|
| minutes        | the fires of one schedule per minute, exactly as iterating from fire to fire finds them       |
| crowds         | the same for crowds of jobs with the same fires, added up, with their jitter and their bounds |
| peaks          | the minutes that stand out, and the jitter that would level them                              |
| what_if        | the same with hypothetical jobs                                                               |
| store          | the statements that count jobs, and the crowds built from their rows                          |
| routes         | the forecast of the coming hours                                                              |
| routes_minute  | the forecast of one minute                                                                    |
| routes_what_if | the forecast with hypothetical jobs                                                           |
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

FEATURE = Feature("forecast", routes=("routes", "routes_minute", "routes_what_if"))
