#!/usr/bin/env python3
"""The commands of deploy/README.md for Kubernetes, run with the installed kubectl against the small API server of kubernetes_server.py.
Afterwards the server has all objects of the site, and pods have the files that their programs need, with certificates that fit each other.
Each check must also find a mistake that is made for it."""

import base64
import copy
import re
import shutil
import subprocess
import tomllib

from documented import documented, shell
from harness import Scratch, expect, skip

try:
    import yaml
    from kubernetes_server import Server
except ImportError:
    skip("the Python packages kubernetes-validate and PyYAML are missing; `make test` installs them")

NAMESPACE = "warploom"
SETTINGS = "/etc/warploom/"  # folder in the containers whose files come from secrets and config maps
CONFIGURATION = """apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
users: [{{name: test, user: {{}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
current-context: test
"""


def find(objects, kind, name):
    found = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    expect(found, f"there is no {kind} {name}")
    return found[0]


def data(objects, kind, name):
    """Returns a dict: key -> bytes of a secret or config map."""
    one = find(objects, kind, name)
    return {key: base64.b64decode(value) if kind == "Secret" else value.encode() for key, value in one["data"].items()}


def pod(workload):
    return workload["spec"]["template"]["spec"]


def mounted(objects, workload):
    """Returns a dict: path -> bytes of the files that a workload's pods get from secrets and config maps."""
    files, spec = {}, pod(workload)
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in spec["containers"][0]["volumeMounts"]:
        volume = volumes.get(mount["name"], {})
        source = volume.get("secret") or volume.get("configMap")
        if source is None:
            continue
        there = data(objects, *(("Secret", source["secretName"]) if "secret" in volume else ("ConfigMap", source["name"])))
        chosen = {item["path"]: item["key"] for item in source["items"]} if "items" in source else {key: key for key in there}
        for path, key in chosen.items():
            expect(key in there, f"volume {mount['name']} of {workload['metadata']['name']}: no key {key} in {sorted(there)}")
        if "subPath" in mount:
            expect(mount["subPath"] in chosen, f"{mount}: there is only {sorted(chosen)}")
            files[mount["mountPath"]] = there[chosen[mount["subPath"]]]
        else:
            files.update({f"{mount['mountPath']}/{path}": there[key] for path, key in chosen.items()})
    return files


def told(workload, files):
    """Returns a dict of a workload's program: option -> value, from the program's arguments and from the configuration file that they
    name."""
    words = pod(workload)["containers"][0]["args"]
    options = {one.removeprefix("--").replace("-", "_"): value for one, value in zip(words, words[1:]) if one.startswith("--")}
    if "config" in options:
        expect(options["config"] in files, f"{options['config']} is not among {sorted(files)}")
        options.update(tomllib.loads(files[options["config"]].decode()))
    return options


def sides(objects):
    """Returns (workload, files, options) of the coordinator, and a list of such triples for the workers."""
    workloads = [one for one in objects if one["kind"] in ("StatefulSet", "Deployment")]
    read = [(one, files := mounted(objects, one), told(one, files)) for one in workloads]
    coordinators = [one for one in read if "listen" in one[2]]
    workers = [one for one in read if "server" in one[2]]
    expect(len(coordinators) == 1 and workers and len(workers) + 1 == len(read), f"{len(coordinators)} coordinators of {len(read)}")
    return coordinators[0], workers


def check_complete(scratch, objects, rendered):
    """The API server has the site's objects as kubectl renders them."""
    for one in rendered:
        expect(one["metadata"]["namespace"] == NAMESPACE, f"{one['kind']} {one['metadata']} is elsewhere")
        found = find(objects, one["kind"], one["metadata"]["name"])
        for part in one.keys() - {"metadata"}:
            expect(found.get(part) == one[part], f"{one['kind']} {one['metadata']['name']}: {part} is {found.get(part)}, not {one[part]}")


def check_files(scratch, objects, rendered):
    """Pods have the files that their programs' options name, and secrets have what certificates.sh made, but never the authority's key."""
    coordinator, workers = sides(objects)
    for workload, files, options in (coordinator, *workers):
        name = workload["metadata"]["name"]
        expect({"tls_ca", "tls_cert", "tls_key"} <= options.keys(), f"{name} is told of no certificate: {options}")
        named = {value for value in options.values() if str(value).startswith(SETTINGS)}
        expect(named <= files.keys(), f"{name} is told of {sorted(named)}, and has {sorted(files)}")
    for secret in (one for one in objects if one["kind"] == "Secret"):
        for key, content in data(objects, "Secret", secret["metadata"]["name"]).items():
            made = scratch.root / "tls" / key
            expect(made.exists() and made.read_bytes() == content, f"{secret['metadata']['name']}: {key} is not tls/{key}")
            expect(key != "ca.key", f"{secret['metadata']['name']} has the authority's key")


def check_certificates(scratch, objects, rendered):
    """Each side's certificate fits its key and is accepted by the other side: the coordinator's certificate is for the host that workers
    call, and the workers' certificates have the role of workers."""
    folder = scratch.root / "checked"
    folder.mkdir(exist_ok=True)

    def openssl(*words):
        done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True)
        expect(done.returncode == 0, f"openssl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def put(side, files, options):
        for what in ("ca", "cert", "key"):
            (folder / f"{side}.{what}").write_bytes(files[options[f"tls_{what}"]])
        public = openssl("x509", "-noout", "-pubkey", "-in", f"{side}.cert")
        expect(openssl("pkey", "-pubout", "-in", f"{side}.key") == public, f"the key of the {side} is of another certificate")

    (_, *coordinator), workers = sides(objects)
    put("coordinator", *coordinator)
    for _, files, options in workers:
        put("worker", files, options)
        host = options["server"].rsplit(":", 1)[0]
        find(objects, "Service", host)
        for name in (host, f"{host}.{NAMESPACE}.svc"):
            openssl("verify", "-CAfile", "worker.ca", "-purpose", "sslserver", "-verify_hostname", name, "coordinator.cert")
        openssl("verify", "-CAfile", "coordinator.ca", "-purpose", "sslclient", "worker.cert")
        names = openssl("x509", "-noout", "-ext", "subjectAltName", "-in", "worker.cert")
        expect("URI:spiffe://warploom/warploom/worker/" in names, f"not for workers: {names}")


CHECKS = (check_complete, check_files, check_certificates)


def secret(objects, of):
    return find(objects, "Secret", f"warploom-{of}-tls")


def settings(objects):
    return next(one for one in objects if one["kind"] == "ConfigMap")


def worker(objects):
    return pod(find(objects, "Deployment", "warploom-worker-cpu"))


def put(of, folder, *keys):
    """Returns a function that replaces keys of a secret by files of another folder."""
    return lambda all, at: secret(all, of)["data"].update({key: base64.b64encode((at.root / folder / key).read_bytes()).decode() for key in keys})


OTHER_SETTINGS = {"warploomd.toml": 'listen = "unix:/run/w"\ntls_ca = "/etc/warploom/tls/root.pem"\ntls_cert = ""\ntls_key = ""'}
OTHER_ITEMS = [{"key": f"tls.{end}", "path": f"worker.{end}"} for end in ("pem", "key")]
# The mistakes that the checks must find. Each row has a description, the check that must find the mistake, and a function that makes it in the
# objects.
BREAKS = (
    ("an object is missing", check_complete, lambda all, _: all.remove(find(all, "Service", "warploom-coordinator"))),
    ("an object is another one", check_complete, lambda all, _: find(all, "StatefulSet", "warploom-coordinator")["spec"].update(replicas=2)),
    ("a secret has another name", check_files, lambda all, _: secret(all, "worker")["metadata"].update(name="worker-tls")),
    ("a key of a secret is missing", check_files, lambda all, _: secret(all, "worker")["data"].pop("worker.key")),
    ("a key of the settings is missing", check_files, lambda all, _: settings(all)["data"].pop("callers.txt")),
    ("the settings have another name", check_files, lambda all, _: settings(all)["metadata"].update(name="settings")),
    ("the settings name another file", check_files, lambda all, _: settings(all)["data"].update(OTHER_SETTINGS)),
    ("an item has no key", check_files, lambda all, _: worker(all)["volumes"][-1]["secret"].update(items=OTHER_ITEMS)),
    ("a worker names another file", check_files, lambda all, _: worker(all)["containers"][0]["args"].__setitem__(-3, "/etc/warploom/tls/tls.key")),
    ("a secret has the authority's key", check_files, put("worker", "tls", "ca.key")),
    ("a file has other bytes", check_files, put("worker", "other", "ca.pem")),
    ("workers trust another authority", check_certificates, put("worker", "other", "ca.pem")),
    ("the coordinator trusts another authority", check_certificates, put("coordinator", "other", "ca.pem")),
    ("a key is of another certificate", check_certificates, put("worker", "other", "worker.key")),
    ("the coordinator's certificate is for another host", check_certificates, put("coordinator", "same", "coordinator.pem", "coordinator.key")),
    ("workers have the certificate of a client", check_certificates, put("worker", "same", "worker.pem", "worker.key")),
    ("workers call another host", check_certificates, lambda all, _: worker(all)["containers"][0]["args"].__setitem__(1, "coordinator:7411")),
)


def check_breaks(scratch, objects, rendered):
    # The folder `other` gets certificates of another authority, the folder `same` gets more certificates of the site's own authority.
    shell(scratch, "deploy/certificates.sh other worker worker; mkdir same; cp tls/ca.* same")
    shell(scratch, "deploy/certificates.sh same coordinator coordinator.lab; deploy/certificates.sh same client worker")
    for what, check, change in BREAKS:
        broken = copy.deepcopy(objects)
        change(broken, scratch)
        try:
            check(scratch, broken, rendered)
        except AssertionError:
            continue
        raise AssertionError(f"nothing is found wrong when {what}")


def refused(scratch, command, reason):
    """Runs a command that the API server must refuse with the given reason."""
    said = shell(scratch, f"! {command} 2>&1").stdout
    expect(reason in said, f"{command}: {said}")


def check_refused(scratch, rendered):
    """An object with a field that the schema does not have is refused."""
    broken = copy.deepcopy(next(one for one in rendered if one["kind"] == "StatefulSet"))
    broken["metadata"]["name"] = "broken"
    pod(broken)["containers"][0]["livenesProbe"] = {}
    (scratch.root / "broken.yaml").write_text(yaml.safe_dump(broken))
    refused(scratch, "kubectl apply -f broken.yaml", "livenesProbe")


def check_scaled(scratch, server, apply):
    """The command of deploy/README.md changes the number of workers and nothing else, until the site is applied again."""
    before = copy.deepcopy(server.objects)
    command = documented("kubectl -n warploom scale deployment")
    name, count = re.search(r" deployment (\S+) --replicas=(\d+)", command).groups()
    key = ("Deployment", NAMESPACE, name)
    shell(scratch, command)
    expect(server.objects[key]["spec"]["replicas"] == int(count) != before[key]["spec"]["replicas"], f"{command}: {server.objects[key]['spec']}")
    expect([one for one in before if server.objects[one] != before[one]] == [key], f"{command} changed more than {name}")
    shell(scratch, apply)
    expect(server.objects[key]["spec"] == before[key]["spec"], f"{apply}: {server.objects[key]['spec']}")


def main():
    if shutil.which("kubectl") is None:
        skip("kubectl is missing; `make test-cluster` installs it")
    with Scratch() as scratch, Server(scratch.root / "server.log") as server:
        scratch.environment["KUBECONFIG"] = scratch.path("kubeconfig")
        (scratch.root / "kubeconfig").write_text(CONFIGURATION.format(url=server.url))
        apply = documented("kubectl apply -k")
        refused(scratch, apply, f'namespaces "{NAMESPACE}" not found')
        once = (documented("kubectl create namespace"), documented("kubectl -n warploom create secret generic warploom-worker-tls"))
        shell(scratch, once[0])
        shell(scratch, documented("deploy/certificates.sh tls coordinator warploom-coordinator"))
        shell(scratch, documented("deploy/certificates.sh tls worker worker"))
        shell(scratch, documented("kubectl -n warploom create secret generic warploom-coordinator-tls"))
        shell(scratch, once[1])
        shell(scratch, apply)
        for command in once:
            refused(scratch, command, "already exists")

        objects = [copy.deepcopy(one) for (_, namespace, _), one in server.objects.items() if namespace == NAMESPACE]
        rendered = list(yaml.safe_load_all(shell(scratch, apply.replace("apply -k", "kustomize")).stdout))
        for check in CHECKS:
            check(scratch, objects, rendered)
        check_breaks(scratch, objects, rendered)
        check_refused(scratch, rendered)

        before = copy.deepcopy(server.objects)
        shell(scratch, apply)
        expect(server.objects == before, "what is applied a second time changes something")
        check_scaled(scratch, server, apply)
        print(f"{len(objects)} objects, {len(rendered)} of them of the site; {len(BREAKS)} breaks were found")


if __name__ == "__main__":
    main()
