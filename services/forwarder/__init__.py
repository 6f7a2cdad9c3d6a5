"""The forwarder: stands before the model in each worker; limits, drains, measures, passes on."""
