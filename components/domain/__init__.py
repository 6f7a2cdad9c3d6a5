"""The vocabulary of the platform: pure types and rules that every other room shares."""
