"""Assets over REST: declared by jobs, updated from outside, listed, and shown with their updates."""

from harness import Client

from api import expect, given


async def test_an_asset_is_declared_updated_once_and_shown(api: Client) -> None:
    name = f"s3://lake/{given.name('asset')}"
    job = await given.job(api, when={"any": [name]})
    assert job["when"] == {"any": [name]}
    path = f"/api/v1/assets/{name}"

    body = {"metadata": {"rows": 3}, "interval": {"start": "2026-11-14T00:00:00Z", "end": "2026-11-15T00:00:00Z"}}
    first = await api("POST", f"{path}/updates", body, Idempotency_Key="one")
    again = await api("POST", f"{path}/updates", body, Idempotency_Key="one")
    assert (first.status, again.json["id"]) == (201, first.json["id"])

    shown = (await api("GET", path)).json
    (use,) = shown["uses"]
    assert (use["role"], use["job"], use["isAny"]) == ("WAITS", job["name"], True)
    (made,) = shown["history"]
    assert (made["id"], made["metadata"], made["intervalEnd"]) == (
        first.json["id"],
        {"rows": 3},
        "2026-11-15T00:00:00Z",
    )
    listed = (await api("GET", "/api/v1/assets?limit=500")).json["items"]
    (row,) = [each for each in listed if each["name"] == name]
    assert (row["consumers"], row["lastJob"], row["lastInstanceId"]) == ([job["name"]], None, None)
    assert (row["updatedAt"], row["lastActor"]) == (made["at"], made["actor"])
    links = (await api("GET", "/api/v1/asset-graph")).json["links"]
    assert {"source": f":{name}", "target": job["name"]} in links


async def test_wrong_assets_are_refused(api: Client) -> None:
    name = given.name("asset")
    missing = await api("POST", f"/api/v1/assets/{name}/updates", {})
    assert (missing.status, missing.json["hint"]) == (
        404,
        "Declare it with `produces` or `when` of a job or a workflow first.",
    )
    job = await given.job(api, when=[name])
    path = f"/api/v1/assets/{name}/updates"
    expect.invalid(await api("POST", path, {"metadata": "x" * 4096}), "metadata")
    backwards = {"start": "2026-11-15T00:00:00Z", "end": "2026-11-14T00:00:00Z"}
    expect.invalid(await api("POST", path, {"interval": backwards}), "interval")
    for wrong in ([], {"some": [name]}, ["two words"]):
        assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", {"when": wrong})).status == 422
    circle = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"produces": [name]})
    expect.invalid(circle, "when")
    assert f"{job['name']} → {name} → {job['name']}" in circle.json["detail"]
