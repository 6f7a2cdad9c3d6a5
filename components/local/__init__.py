"""Everything in one cluster: what a cloud would give, as pods with disks."""
