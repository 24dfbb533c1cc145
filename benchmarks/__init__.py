"""Figures, always beside what PostgreSQL itself can do in the same sitting, as ratios.

scenarios    which figures there are
scenario     what a figure is: its samples, its lines in the table, what is asked of it
sitting      one PostgreSQL for all that is compared, and a fresh database for each sample
backlog      the rows a sample starts from, and the account of what became of them
engines      the engine as the benchmarks run it, with executors that do next to nothing
processes    further processes of a sample
table        the one table, and the JSON that is kept
peers/       other schedulers, in the same sitting
"""
