"""The programs: one stack for the foundation, one for the platform on it."""
