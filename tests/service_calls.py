"""Which calls of AWS each service makes, read from its source.

A client's method anywhere in ``services/`` that isn't known here fails the tests, as does a call
that no policy allows: nobody adds one without seeing to the right for it.
"""

import ast
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

SERVICES = Path(__file__).resolve().parents[1] / "services"
_MANAGED_TRANSFERS = {"upload_file", "download_file", "upload_fileobj", "download_fileobj"}
"""Methods of boto3's S3 client that are several calls each."""
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _operations(service: str) -> frozenset[str]:
    model = botocore.session.get_session().get_service_model(service)
    names = {xform_name(name) for name in model.operation_names}
    return frozenset(names | (_MANAGED_TRANSFERS if service == "s3" else set()))


@dataclass(frozen=True)
class Source:
    """A file that uses AWS, and which of its services."""

    path: Path
    tree: ast.Module
    service: str

    def calls(self) -> Mapping[str, set[str]]:
        """Return the calls that each function and method leads to, through others of the file."""
        functions = {it.name: it for it in self.tree.body if isinstance(it, _FUNCTION)}
        methods = {
            it.name: it
            for kind in self.tree.body
            if isinstance(kind, ast.ClassDef)
            for it in kind.body
            if isinstance(it, _FUNCTION)
        }
        bodies = {**functions, **methods}
        direct = {name: set(self._direct(node)) for name, node in bodies.items()}
        uses = {
            name: set(_used(node, functions.keys(), methods.keys()))
            for name, node in bodies.items()
        }
        return {name: self._closure(name, direct, uses) for name in bodies}

    def _direct(self, node: ast.AST) -> Iterator[str]:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                receiver = ast.unparse(inner.func.value)
                is_client = receiver.endswith(("client", "client()", "sqs()"))
                if is_client and inner.func.attr in _operations(self.service):
                    yield inner.func.attr

    @staticmethod
    def _closure(
        name: str, direct: Mapping[str, set[str]], uses: Mapping[str, set[str]]
    ) -> set[str]:
        seen, todo = set[str](), [name]
        while todo:
            current = todo.pop()
            if current not in seen:
                seen.add(current)
                todo.extend(uses[current])
        return set().union(*(direct[it] for it in seen))


def _used(node: ast.AST, functions: Set[str], methods: Set[str]) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in methods:
                yield name
            case ast.Name(id=name) if name in functions:
                yield name


def _service_of(tree: ast.Module) -> str | None:
    """Return the service that a file makes a client of."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "client"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            return str(node.args[0].value)
    return None


@cache
def sources() -> Mapping[str, Source]:
    """Return every file that makes a client of AWS, by its path in ``services/``."""
    found: dict[str, Source] = {}
    for path in sorted(SERVICES.rglob("*.py")):
        text = path.read_text()
        if "boto" in text:
            tree = ast.parse(text)
            service = _service_of(tree)
            if service is not None:
                found[str(path.relative_to(SERVICES))] = Source(path, tree, service)
    return found


def importing_boto() -> set[str]:
    """Return every file that imports AWS' SDK."""
    return {
        str(path.relative_to(SERVICES))
        for path in SERVICES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(
            name.split(".")[0] in {"boto3", "botocore"}
            for name in [getattr(node, "module", "") or "", *(it.name for it in node.names)]
        )
    }


def methods_used(folder: str, receivers: set[str], of: set[str]) -> set[str]:
    """Return which methods of something a service's folder uses.

    Args:
        folder: The service's folder.
        receivers: What the thing is called there, without a leading ``_``.
        of: The thing's methods.
    """
    used: set[str] = set()
    for path in (SERVICES / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in of:
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else None
                name = owner.id if isinstance(owner, ast.Name) else name
                if name is not None and name.lstrip("_") in receivers:
                    used.add(node.attr)
    return used
