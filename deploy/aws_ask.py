"""The last step of an environment in AWS: a question, and how to ask more."""

from lab.progress import Report

from .ask import QUESTION, Gateway
from .aws_environment import DEMO_MODEL, AwsEnvironment
from .reach import PATIENCE_SECONDS, why_unreachable


def ask(gateway: Gateway, environment: AwsEnvironment, report: Report) -> None:
    """Ask the demo, or else which models there are, and print what came and how to ask oneself.

    A gateway without a public address may be out of reach here: that is said, and fails nothing.

    Raises:
        DeployError: it is in reach, and there is no answer.
    """
    private = not environment.platform.gateway.public
    reason = why_unreachable(gateway.address, PATIENCE_SECONDS, report) if private else ""
    answer = _answer(gateway, environment, report) if not reason else _OUT_OF_REACH.format(reason)
    print(f"\n{answer}\n\ngateway   {gateway.address}")
    print("\n".join(["\nAsk it yourself:", *_how(gateway, environment, from_here=not reason)]))


_OUT_OF_REACH = (
    "The gateway is reached from inside of the network only, and not from here ({}): nothing was "
    "asked."
)


def _answer(gateway: Gateway, environment: AwsEnvironment, report: Report) -> str:
    if environment.has_demo:
        return f"{QUESTION}\n{gateway.ask(DEMO_MODEL, QUESTION, report)}"
    return f"models: {', '.join(gateway.models(report)) or 'none yet'}"


def _how(gateway: Gateway, environment: AwsEnvironment, *, from_here: bool) -> list[str]:
    name = environment.name
    lines = [
        f'  eval "$(make -s env ENV={name})"   # pulumi and kubectl in reach',
        # Not the key itself: what a runner prints is kept, and read by many.
        "  export LLM_PLATFORM_KEY=$(pulumi stack output admin_key --show-secrets "
        f"--stack platform.{name})",
    ]
    if not from_here:
        lines += [
            "  # from a machine in the network; or through the cluster's API:",
            "  kubectl port-forward --namespace llm-platform service/gateway 8080:80 &",
        ]
        gateway = Gateway("http://127.0.0.1:8080", gateway.key)
    demo = environment.has_demo
    asking = gateway.curl(DEMO_MODEL, QUESTION) if demo else gateway.curl_models()
    return [*lines, f"  {asking}"]
