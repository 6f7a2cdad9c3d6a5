"""The cacher: turns what endpoints declare in the cluster into records that the gateway reads."""
