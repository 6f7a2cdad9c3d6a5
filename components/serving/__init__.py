"""What serves models: the gateway, the cacher, and the endpoints."""
