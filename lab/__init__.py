"""A real one-node Kubernetes cluster, and the tool chain, for a machine that has neither.

It runs before the project's virtual environment exists, so it needs nothing but
Python's standard library, and it knows nothing of the product that runs on it.
"""
