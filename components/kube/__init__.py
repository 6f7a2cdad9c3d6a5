"""What every cluster needs, whichever cloud it stands in."""
