"""What runs in the cluster: each service is one process, started as ``python -m services.NAME``."""
