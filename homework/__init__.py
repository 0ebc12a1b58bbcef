"""Nine graded units, one for each stretch of the notebooks. `homework/README.md` is the
instructor's page."""
