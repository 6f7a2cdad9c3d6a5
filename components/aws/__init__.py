"""Everything in AWS: an EKS cluster with GPU nodes, and the data services beside it."""
