"""The gateway: checks the key, finds the endpoint, and carries the request to a worker."""
