"""What runs in a worker's model container where the engine's own image isn't enough."""
