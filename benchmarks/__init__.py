"""Figures, always beside what PostgreSQL itself can do in the same sitting, as ratios."""
