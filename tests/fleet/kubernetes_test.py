#!/usr/bin/env python3
"""The manifests of deploy/kubernetes: every object is valid by the published schema (strictly: it has no unknown field), and ports, probes,
volumes, selectors, images and permissions of pods fit each other. Each rule must also find a mistake that is made for it. If kubectl is
installed, its output is checked as well."""

import copy
import json
import shutil
import subprocess

from harness import SOURCE, expect, skip

try:
    import kubernetes_validate
    import yaml
except ImportError:
    skip("the Python packages kubernetes-validate and PyYAML are missing; `make test` installs them")

VERSION = "1.30"
ROOT = SOURCE / "deploy/kubernetes"
OVERLAYS = ("base", "workers-cpu", "workers-nvidia", "workers-amd")


def read(folder):
    """Returns the objects of a folder's kustomization, and of the kustomizations that it refers to."""
    objects = []
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization.get("bases", []) + kustomization.get("resources", []):
        path = folder / name
        objects += read(path) if path.is_dir() else [one for one in yaml.safe_load_all(path.read_text()) if one]
    return objects


def pods(objects):
    return [one for one in objects if one["kind"] in ("StatefulSet", "Deployment", "Job")]


def template(workload):
    return workload["spec"]["template"]


def ports(workload):
    """Returns the names and the numbers of the ports of a workload's containers."""
    found = [port for container in template(workload)["spec"]["containers"] for port in container.get("ports", [])]
    return {port["name"] for port in found} | {port["containerPort"] for port in found}


def selected(objects, selector):
    return [one for one in pods(objects) if selector.items() <= template(one)["metadata"]["labels"].items()]


def check_services(objects):
    for service in (one for one in objects if one["kind"] == "Service"):
        chosen = selected(objects, service["spec"]["selector"])
        expect(chosen, f"service {service['metadata']['name']} selects no pod")
        for port in service["spec"]["ports"]:
            expect(all(port["targetPort"] in ports(one) for one in chosen), f"service port {port}: its pods have no {port['targetPort']}")


def check_policies(objects):
    for policy in (one for one in objects if one["kind"] in ("NetworkPolicy", "PodDisruptionBudget")):
        name, spec = policy["metadata"]["name"], policy["spec"]
        chosen = selected(objects, spec.get("podSelector", spec.get("selector"))["matchLabels"])
        expect(chosen or "worker" in name, f"{policy['kind']} {name} selects no pod")
        for rule in spec.get("ingress", []):
            for port in rule.get("ports", []):
                expect(all(port["port"] in ports(one) for one in chosen), f"{name}: its pods have no port {port['port']}")
    kinds = {one["kind"] for one in objects}
    expect({"NetworkPolicy", "PodDisruptionBudget"} <= kinds, f"only {kinds}")


def check_pods(objects):
    services = {one["metadata"]["name"]: {port["port"] for port in one["spec"]["ports"]} for one in objects if one["kind"] == "Service"}
    for one in pods(objects):
        name, spec = one["metadata"]["name"], template(one)["spec"]
        labels = template(one)["metadata"]["labels"]
        expect(one["spec"]["selector"]["matchLabels"].items() <= labels.items(), f"{name} does not select its own pods")
        expect(spec["securityContext"].get("runAsNonRoot") and spec["automountServiceAccountToken"] is False, f"{name} may do too much")
        for container in spec["containers"]:
            rights = container["securityContext"]
            expect(rights["allowPrivilegeEscalation"] is False and rights["readOnlyRootFilesystem"], f"{name} may do too much")
            expect(rights["capabilities"] == {"drop": ["ALL"]}, f"{name} keeps capabilities")
            expect("memory" in container["resources"]["limits"], f"{name} has no limit of memory")
            mounted, volumes = {mount["name"] for mount in container["volumeMounts"]}, {volume["name"] for volume in spec["volumes"]}
            claims = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
            expect(mounted == volumes | claims, f"{name} mounts {mounted}, and has {volumes | claims}")
            component = labels["app.kubernetes.io/component"]
            if component == "coordinator":
                check_coordinator(one, container)
                continue
            server = container["args"][container["args"].index("--server") + 1].rsplit(":", 1)
            expect(not services or int(server[1]) in services.get(server[0], ()), f"{name} calls {server}, the services are {services}")
            requests, limits = container["resources"]["requests"], container["resources"]["limits"]
            expect(requests["cpu"] == limits["cpu"] and requests["memory"] == limits["memory"], f"{name} shares its processors")


def check_coordinator(one, container):
    expect(one["kind"] == "StatefulSet" and one["spec"]["replicas"] == 1, "two coordinators on one store would damage it")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        expect(probe in container, f"the coordinator has no {probe}")
        get = container[probe]["httpGet"]
        expect(get["port"] in ports(one) and get["scheme"] == "HTTPS", f"{probe}: {get}")
    expect(container["lifecycle"]["preStop"]["exec"]["command"][:2] == ["warploom", "drain"], "it does not drain before it stops")
    settings = (ROOT / "base/warploomd.toml").read_text()
    for name, number in (("grpc", 7411), ("metrics", 9411)):
        port = next(port for port in container["ports"] if port["name"] == name)
        expect(port["containerPort"] == number and f":{number}\"" in settings, f"port {name} is not the one of warploomd.toml")


def check(objects):
    for one in objects:
        kubernetes_validate.validate(one, VERSION, strict=True)
    check_services(objects)
    check_policies(objects)
    check_pods(objects)


def coordinator(objects):
    return template(next(one for one in objects if one["kind"] == "StatefulSet"))["spec"]["containers"][0]


def worker(objects):
    return template(next(one for one in objects if one["kind"] == "Deployment"))["spec"]["containers"][0]


def kind(objects, name):
    return next(one for one in objects if one["kind"] == name)


BREAKS = (
    ("a port has another name", lambda all: coordinator(all)["ports"][0].update(name="rpc")),
    ("a port has another number", lambda all: coordinator(all)["ports"][1].update(containerPort=9412)),
    ("a probe is missing", lambda all: coordinator(all).pop("livenessProbe")),
    ("a probe is in plain text", lambda all: coordinator(all)["readinessProbe"]["httpGet"].pop("scheme")),
    ("a field is misspelt", lambda all: coordinator(all).update(livenesProbe={})),
    ("two replicas", lambda all: kind(all, "StatefulSet")["spec"].update(replicas=2)),
    ("a selector fits nothing", lambda all: kind(all, "Service")["spec"]["selector"].update(app="other")),
    ("a budget fits nothing", lambda all: kind(all, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"].update(app="other")),
    ("no network policy", lambda all: [all.remove(one) for one in list(all) if one["kind"] == "NetworkPolicy"]),
    ("a volume is missing", lambda all: coordinator(all)["volumeMounts"].pop()),
    ("root may run", lambda all: template(kind(all, "Deployment"))["spec"]["securityContext"].pop("runAsNonRoot")),
    ("no limit of memory", lambda all: worker(all)["resources"]["limits"].pop("memory")),
    ("another coordinator is called", lambda all: worker(all)["args"].__setitem__(1, "coordinator:7411")),
    ("another port is called", lambda all: worker(all)["args"].__setitem__(1, "warploom-coordinator:7412")),
    ("processors are shared", lambda all: worker(all)["resources"]["requests"].update(cpu="1")),
)


def check_rendered(site, objects):
    if shutil.which("kubectl") is None:
        return "kubectl is not here, so nothing was rendered"
    done = subprocess.run(["kubectl", "kustomize", str(ROOT / "site")], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stderr)
    rendered = [one for one in yaml.safe_load_all(done.stdout) if one]
    check(rendered)
    expect(all(one["metadata"].get("namespace") == site["namespace"] for one in rendered), "something is outside the namespace")
    images = {container["image"] for one in pods(rendered) for container in template(one)["spec"]["containers"]}
    expect(all(image.startswith("registry.example.org/") for image in images), images)
    expect(len(rendered) == len(objects) + 1, f"{len(rendered)} objects of {len(objects)} and the settings")
    return "rendered by kubectl too"


def main():
    objects = [one for name in OVERLAYS for one in read(ROOT / name)]
    check(objects)
    for what, change in BREAKS:
        broken = copy.deepcopy(objects)
        change(broken)
        try:
            check(broken)
        except (AssertionError, KeyError, kubernetes_validate.ValidationError):
            continue
        raise AssertionError(f"nothing is found wrong when {what}")
    site = yaml.safe_load((ROOT / "site/kustomization.yaml").read_text())
    names = {container["image"].rsplit(":", 1)[0] for one in pods(read(ROOT / "site")) for container in template(one)["spec"]["containers"]}
    expect({image["name"] for image in site["images"]} == names, f"images of the site: {json.dumps(site['images'])}, of its pods: {names}")
    print(f"{len(objects)} objects are valid for Kubernetes {VERSION}; {len(BREAKS)} breaks were found;", check_rendered(site, read(ROOT / "site")))


if __name__ == "__main__":
    main()
