"""The plain routes: health, metrics, and the list of models."""

from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException

from services.core import openai
from services.core.metrics import CONTENT_TYPE, exposition

from . import call as calls
from .directory import Caller, Directory, Route
from .errors import MethodNotAllowed, NotFound, NotReady, Refused
from .inference import refusal_headers


def plain_routes(
    directory: Directory, registry: CollectorRegistry, missing: Callable[[], list[str]]
) -> FastAPI:
    """Build the application of everything but inference.

    Args:
        directory: keys and endpoints.
        registry: the metrics to show.
        missing: what still has to happen before the gateway is ready; empty when it is.
    """
    app = FastAPI(title="llm-platform gateway", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response(status_code=200)

    @app.get("/readyz")
    async def readyz() -> Response:
        waiting = missing()
        return JSONResponse({"waiting_for": waiting}, status_code=503 if waiting else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(registry), media_type=CONTENT_TYPE)

    models = _models(directory)
    app.include_router(models, prefix="/v1")
    app.include_router(models, prefix="/openai/v1")
    return app


def _models(directory: Directory) -> APIRouter:
    router = APIRouter()

    def caller(request: Request) -> Caller:
        if not directory.loaded:
            raise NotReady("The gateway is starting.")
        return directory.caller(calls.api_key(request.headers.raw))

    @router.get("/models")
    async def list_models(request: Request) -> dict[str, object]:
        data = [_model(route) for route in directory.routes(caller(request))]
        return {"object": "list", "data": data}

    @router.get("/models/{name:path}")
    async def get_model(name: str, request: Request) -> dict[str, object]:
        return _model(directory.route(name, caller(request)))

    return router


def _model(route: Route) -> dict[str, object]:
    return {"id": route.name, "object": "model", "created": route.created, "owned_by": route.team}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101
    request_id = calls.request_id(request.headers.raw)
    body = openai.error_body(error.status, str(error), code=error.code, param=error.param)
    headers = {n.decode(): v.decode() for n, v in refusal_headers(error, request_id)}
    return Response(body, error.status, headers, media_type="application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if error.status_code == 405:
        return await _refused(request, MethodNotAllowed(f"{request.method} isn't allowed here."))
    return await _refused(request, NotFound(f"There is no {request.url.path[:200]!r} here."))
