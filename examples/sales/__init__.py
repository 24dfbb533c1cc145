"""A data pipeline: the sales of each day, loaded file by file.

warehouse  the business: files, loaded sums and reports, in a schema of their own
jobs       the daily workflow, with a map over the files of the day
story      a week of sales, told by the running system
__main__   one command: Horai, a worker, the story
"""
