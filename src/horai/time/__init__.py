"""Time rules: cron, schedules, zones, misfires, overlap. Pure functions of their arguments."""
