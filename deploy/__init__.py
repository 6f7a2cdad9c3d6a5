"""What stands behind ``make up``: cluster, images, weights, and the two ``pulumi up``s in order."""
