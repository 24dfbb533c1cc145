"""The Helm chart: its values, and the objects that it makes of them."""

from collections.abc import Mapping
from typing import Any

import charts
import pytest
from charts import LEAST, MOST, PROXIED, VALUES
from gotpl import TemplateError
from kubernetes_types import faults

from horai import __version__

CHOSEN = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)


def of_kind(objects: list[Any], kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


@CHOSEN
def test_every_object_has_the_fields_and_types_of_kubernetes(values: Mapping[str, Any]) -> None:
    objects = [each for each in charts.manifests(values) if each["kind"] != "ServiceMonitor"]

    assert len(objects) >= 6
    assert [fault for each in objects for fault in faults(each)] == []


def test_the_check_of_objects_finds_unknown_missing_and_wrong_fields() -> None:
    (service, *_) = charts.manifests(LEAST)
    service["spec"] |= {"prots": [], "ports": [{"name": "http", "port": "8470"}, {"name": "none"}]}

    assert faults(service) == [
        "Service.spec.prots is unknown",
        "Service.spec.ports[0].port is '8470', not int",
        "Service.spec.ports[1].port is missing",
    ]
    assert faults({"apiVersion": "extensions/v1beta1", "kind": "Ingress"}) == [
        "extensions/v1beta1 Ingress is not known"
    ]


@CHOSEN
def test_no_process_is_root_or_may_write_its_root_file_system(values: Mapping[str, Any]) -> None:
    found = dict(charts.pods(charts.manifests(values)))

    assert len(found) >= 2
    for pod in found.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert (context["privileged"], context["allowPrivilegeEscalation"]) == (False, False)
        assert {mount["name"] for mount in container["volumeMounts"]} >= {"secrets", "tmp"}
        assert container["resources"]["limits"]["memory"]


@CHOSEN
def test_secrets_are_files_of_secrets_that_exist(values: Mapping[str, Any]) -> None:
    objects = charts.manifests(values)

    assert of_kind(objects, "Secret") == {}
    for _, pod in charts.pods(objects):
        variables = [each for each in pod["containers"][0]["env"] if "secretKeyRef" in str(each)]
        assert variables == []
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert "db" in str(volumes["secrets"]) or "owner" in str(volumes["secrets"])
        for mount in pod["containers"][0]["volumeMounts"]:
            is_claimed = mount["name"] == "state" and MOST["fullnameOverride"] in str(objects)
            assert mount["name"] in volumes or is_claimed


def test_the_migration_runs_before_the_pods_and_needs_no_object_of_the_release() -> None:
    job = of_kind(charts.manifests(MOST), "Job")["timer-migrate"]
    pod = job["spec"]["template"]["spec"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "serviceAccountName" not in pod
    assert pod["volumes"][0]["secret"]["secretName"] == "owner"
    assert [item["path"] for item in pod["volumes"][0]["secret"]["items"]] == ["owner-url", "admin-url"]
    assert of_kind(charts.manifests(PROXIED), "Job") == {}


def test_clients_reach_the_api_and_not_the_nodes() -> None:
    objects = charts.manifests(MOST)
    service = of_kind(objects, "Service")["timer-api"]
    policies = of_kind(objects, "NetworkPolicy")

    assert service["spec"]["selector"]["app.kubernetes.io/component"] == "api"
    assert set(policies) == {"timer-api", "timer-node", "timer-worker", "timer-migration"}
    assert policies["timer-worker"]["spec"]["ingress"] == []
    peers = [peer["namespaceSelector"]["matchLabels"]["team"] for peer in _peers(policies["timer-api"])]
    assert peers == ["web", "monitoring"]
    assert [peer["namespaceSelector"]["matchLabels"]["team"] for peer in _peers(policies["timer-node"])] == [
        "monitoring"
    ]
    closed = of_kind(charts.manifests(LEAST), "NetworkPolicy")
    assert _peers(closed["demo-horai-api"]) == [{"podSelector": {}}]
    assert closed["demo-horai-node"]["spec"]["ingress"] == []


def _peers(policy: Any) -> list[Any]:
    return policy["spec"]["ingress"][0]["from"]


def test_the_autoscaler_follows_the_cpu_and_the_desired_dispatchers() -> None:
    objects = charts.manifests(MOST)
    scaler = of_kind(objects, "HorizontalPodAutoscaler")["timer-node"]["spec"]

    assert "replicas" not in of_kind(objects, "StatefulSet")["timer-node"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == "timer-node"
    assert [each["type"] for each in scaler["metrics"]] == ["Resource", "External"]
    external = scaler["metrics"][1]["external"]
    assert external["target"] == {"type": "AverageValue", "averageValue": "1"}, "one pod for each dispatcher"
    plain = of_kind(charts.manifests(PROXIED), "HorizontalPodAutoscaler")["demo-horai-node"]["spec"]
    assert [each["type"] for each in plain["metrics"]] == ["Resource"]


def test_a_pod_has_more_time_to_stop_than_its_calls_have_to_finish() -> None:
    for name, pod in charts.pods(charts.manifests(MOST)):
        if not name.endswith("-migrate"):
            grace = next(each["value"] for each in pod["containers"][0]["env"] if each["name"] == "HORAI_GRACE")
            assert (grace, pod["terminationGracePeriodSeconds"]) == ("30s", 50)


def test_budgets_keep_all_pods_of_a_kind_but_one() -> None:
    budgets = of_kind(charts.manifests(MOST), "PodDisruptionBudget")

    assert {name: each["spec"]["maxUnavailable"] for name, each in budgets.items()} == {
        "timer-api": 1,
        "timer-node": 1,
        "timer-worker": 1,
    }


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "shorter than 1 character"),
        ({**LEAST, "replicas": 3}, "'replicas' was unexpected"),
        ({**LEAST, "node": {"replicas": 33}}, "greater than the maximum of 32"),
        ({**LEAST, "worker": {"enabled": True}}, "shorter than 1 character"),
        ({**LEAST, "api": {"extraEnv": [{"nme": "A"}]}}, "'nme' was unexpected"),
        ({**LEAST, "access": {"publicUrl": "horai.example.com"}}, "does not match"),
    ],
    ids=["no database", "unknown value", "too many nodes", "worker without application", "variable", "public URL"],
)
def test_wrong_values_are_refused_by_the_schema(values: Mapping[str, Any], reason: str) -> None:
    assert reason in " ".join(charts.refusals(values))


@CHOSEN
def test_the_schema_accepts_values_and_knows_every_one_of_them(values: Mapping[str, Any]) -> None:
    assert charts.refusals(values) == []


def test_a_server_without_tls_is_refused_unless_the_values_accept_it() -> None:
    with pytest.raises(TemplateError, match=r"Give access\.tls\.existingSecret or access\.trustedProxies"):
        charts.texts({"database": {"existingSecret": "db"}})


def test_the_chart_has_the_version_of_horai() -> None:
    text = (charts.CHART / "Chart.yaml").read_text()

    assert f"\nversion: {__version__}\n" in text
    assert f'\nappVersion: "{__version__}"\n' in text


def test_the_notes_warn_of_what_is_missing() -> None:
    least, most = (charts.texts(values)["horai/templates/NOTES.txt"] for values in (LEAST, MOST))

    assert least.count("WARNING") == 3
    assert "WARNING" not in most
    assert "https://horai.example.com" in most
