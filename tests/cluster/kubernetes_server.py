"""A small API server of Kubernetes for tests of kubectl. It listens on loopback, knows the kinds of deploy/kubernetes, and keeps objects in
memory. It starts no pods. Like a real API server it refuses objects that are invalid by the published schemas, that are in a namespace
which does not exist, or whose name is taken. It publishes no schema, so kubectl leaves validation to it."""

import contextlib
import copy
import http.server
import json
import re
import threading
import uuid

import kubernetes_validate
from kubernetes_protobuf import decoded

VERSION = "1.30"
RESOURCES = {
    "v1": {"namespaces": "Namespace", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret"},
    "apps/v1": {"deployments": "Deployment", "statefulsets": "StatefulSet"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
}
SCALED = {"deployments", "statefulsets"}
PATH = re.compile(
    r"/(?:api|apis)/(?P<version>v1|[\w.]+/v1)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?P<scale>/scale)?)?"
)
# A merge patch and a strategic merge patch treat maps in the same way. They treat lists differently, but this server does not support patches of
# lists.
PATCHES = {"application/merge-patch+json", "application/strategic-merge-patch+json"}


class Refused(Exception):
    """A request that the server refuses: the HTTP status, and the reason and message of a Status object."""

    def __init__(self, code, reason, message, **more):
        super().__init__(message)
        self.code = code
        self.status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code, **more}


def invalid(one, field, message):
    name = one["metadata"].get("name", "")
    # The message is repeated in `causes`, because some versions of kubectl show only the causes.
    details = {"kind": one["kind"], "name": name, "causes": [{"reason": "FieldValueInvalid", "field": field, "message": message}]}
    return Refused(422, "Invalid", f'{one["kind"]} "{name}" is invalid: {field}: {message}', details=details)


def described(version, resource, kind):
    """Yields the entries of a resource in the server's list of resources."""
    one = {"name": resource, "singularName": kind.lower(), "namespaced": kind != "Namespace", "kind": kind, "verbs": ["create", "get", "patch"]}
    yield one
    if resource in SCALED:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch"]}
        yield dict(one, name=f"{resource}/scale", singularName="", **scale)


def discovery():
    """Returns a dict: path -> answer to questions about the server itself."""
    major, minor = VERSION.split(".")
    answers = {"/version": {"major": major, "minor": minor, "gitVersion": f"v{VERSION}.0"}}
    answers["/api"] = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    groups = []
    for version, resources in RESOURCES.items():
        listed = [entry for resource, kind in resources.items() for entry in described(version, resource, kind)]
        prefix = "/apis/" if "/" in version else "/api/"
        answers[prefix + version] = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}
        if "/" in version:
            name, number = version.split("/")
            offered = {"groupVersion": version, "version": number}
            groups.append({"name": name, "versions": [offered], "preferredVersion": offered})
    answers["/apis"] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    return answers


def read(kind_of_body, body):
    try:
        return decoded(body) if kind_of_body == "application/vnd.kubernetes.protobuf" else json.loads(body)
    except (ValueError, LookupError) as error:
        raise Refused(400, "BadRequest", f"{kind_of_body}: {error!r}") from error


def merged(value, patch):
    """Returns a map with a patch applied. A value of null removes the key."""
    result = dict(value)
    for key, change in patch.items():
        if isinstance(change, list) or key.startswith("$"):
            raise Refused(415, "UnsupportedMediaType", f"this server patches no lists: {key}")
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key) or {}, change) if isinstance(change, dict) else change
    return result


class Server:
    """The server, as a context manager. `url`: the server's address; `objects`: (kind, namespace, name) -> object; `log`: the file to which
    requests are logged."""

    def __init__(self, log):
        self.log, self.objects, self.changes, self.lock = log, {}, 0, threading.Lock()
        self.discovery = discovery()
        for name in ("default", "kube-system"):
            self.create("v1", "Namespace", "", {"metadata": {"name": name}})

    def __enter__(self):
        self.listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.listener.daemon_threads = True
        self.thread = threading.Thread(target=self.listener.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.listener.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.listener.shutdown()
        self.thread.join()
        self.listener.server_close()

    def answer(self, method, path, kind_of_body, body):
        """Returns the HTTP status and the text with which a request is answered."""
        with self.lock:
            try:
                code, answer = self.answered(method, path, kind_of_body, body)
            except Refused as refused:
                code, answer = refused.code, refused.status
            return code, json.dumps(answer)

    def answered(self, method, path, kind_of_body, body):
        if method == "GET" and path in self.discovery:
            return 200, self.discovery[path]
        at = PATH.fullmatch(path)
        kind = at and RESOURCES.get(at["version"], {}).get(at["resource"])
        if kind is None or bool(at["namespace"]) == (kind == "Namespace"):
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        version, namespace = at["version"], at["namespace"] or ""
        if method == "POST" and at["name"] is None:
            return 201, self.create(version, kind, namespace, read(kind_of_body, body))
        found = self.objects.get((kind, namespace, at["name"]))
        if found is None:
            raise Refused(404, "NotFound", f'{at["resource"]} "{at["name"]}" not found')
        if at["scale"] and at["resource"] not in SCALED:
            raise Refused(404, "NotFound", f"{at['resource']} have no scale")
        if method == "PATCH" and kind_of_body in PATCHES:
            patch = read(kind_of_body, body)
            found = self.keep(merged(found, {"spec": patch["spec"]} if at["scale"] else patch))
        elif method != "GET":
            raise Refused(405, "MethodNotAllowed", f"{method} of {kind_of_body} at {path}")
        return 200, scale(found) if at["scale"] else found

    def create(self, version, kind, namespace, sent):
        made = dict(copy.deepcopy(sent), apiVersion=sent.get("apiVersion", version), kind=sent.get("kind", kind))
        metadata = made.setdefault("metadata", {})
        name, inside = metadata.get("name", ""), metadata.get("namespace", namespace)
        if (made["apiVersion"], made["kind"], inside) != (version, kind, namespace):
            raise Refused(400, "BadRequest", f"{made['apiVersion']} {made['kind']} of {inside!r} was sent as {version} {kind} of {namespace!r}")
        if namespace:
            metadata["namespace"] = namespace
            if ("Namespace", "", namespace) not in self.objects:
                raise Refused(404, "NotFound", f'namespaces "{namespace}" not found')
        if (kind, namespace, name) in self.objects:
            raise Refused(409, "AlreadyExists", f'{kind} "{name}" already exists')
        metadata.update(uid=str(uuid.uuid4()), creationTimestamp="2026-01-01T00:00:00Z")
        return self.keep(made)

    def keep(self, one):
        """Validates and stores an object. An object that has changed gets a new version."""
        metadata = one["metadata"]
        try:
            kubernetes_validate.validate(one, VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise invalid(one, ".".join(map(str, error.path)), error.message) from error
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", metadata.get("name", "")):
            raise invalid(one, "metadata.name", "this is no name")
        key = (one["kind"], metadata.get("namespace", ""), metadata["name"])
        if one != self.objects.get(key):
            self.changes += 1
            metadata["resourceVersion"] = str(self.changes)
            self.objects[key] = one
        return one


def scale(one):
    metadata = {key: one["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {"replicas": one["spec"]["replicas"]}}


def handler(server):
    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.split("?")[0]
            code, content = 200, b""
            # For /openapi/v2 the body is empty, which is a document without schemas in the encoding that kubectl asks for (protocol buffers).
            if path != "/openapi/v2":
                code, text = server.answer(self.command, path, self.headers.get("Content-Type", ""), body)
                content = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/octet-stream" if path == "/openapi/v2" else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = respond

        def log_message(self, text, *values):
            with server.lock, open(server.log, "a") as file:
                print(text % values, file=file)

    return Handler
