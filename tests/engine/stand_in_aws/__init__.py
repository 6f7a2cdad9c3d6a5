"""A stand-in for the AWS provider: the engine starts it as ``pulumi-resource-aws``.

It refuses what the SDK's own classes and boto3's own models refuse, keeps what it makes in moto
(where moto has the call) or in a file, and takes nothing that its table doesn't name.
"""
