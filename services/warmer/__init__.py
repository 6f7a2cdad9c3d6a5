"""The warmer: publishes weights, and brings them to where they are needed."""
