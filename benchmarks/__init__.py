"""Figures, each next to what PostgreSQL itself does in the same sitting, as ratios.

scenarios    the list of figures
scenario     one figure: its samples, its lines in the table, its targets
sitting      one PostgreSQL for all that is compared, and a fresh database for each sample
backlog      the rows a sample starts from, and the check that each row was settled
engines      the engine as the benchmarks run it, with executors that do next to nothing
processes    further processes of a sample
table        the one table, and the JSON that is kept
peers/       other schedulers, in the same sitting
"""
