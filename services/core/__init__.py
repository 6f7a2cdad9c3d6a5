"""What at least two services need: settings, logs, keys, records, and the way of a request."""
