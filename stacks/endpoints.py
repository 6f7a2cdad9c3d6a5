"""The endpoints that the platform itself declares. Add yours here."""

from collections.abc import Mapping

from components import EndpointType, LlamaCpp, ModelEndpointArgs, Resources, Scaling, Weights
from components.serving.platform import Platform

from .settings import PlatformSettings


def endpoints(
    teams: Mapping[str, Platform], settings: PlatformSettings
) -> dict[str, ModelEndpointArgs]:
    """Return each endpoint under its name, which clients say as ``model``."""
    declared: dict[str, ModelEndpointArgs] = {}
    # The demo: Gemma 3 270M, under the Gemma terms of use (https://ai.google.dev/gemma/terms). It
    # was never trained for chats, so a plain template makes questions and answers of them.
    llamacpp = settings.images.llamacpp
    if "gemma" in settings.weights and "demo" in teams and llamacpp:
        declared["gemma"] = ModelEndpointArgs(
            platform=teams["demo"],
            runtime=LlamaCpp(model="gemma-3-270m", image=llamacpp, chat_template="plain"),
            weights=Weights(settings.weights["gemma"]),
            type=EndpointType.STREAMING,
            resources=Resources(cpu="250m", memory="1Gi", disk="1Gi"),
            scaling=Scaling(min_workers=1, per_worker=2, max_concurrency=4),
        )
    return declared
