"""Signing in: `regatta token` and `regatta ui`."""
import re

from service import start_service


def test_tokens_are_made_listed_and_revoked(regatta, service):
    token = regatta("token", "new", "--scope", "read", "--name", "grafana", "--expires", "7d").out.strip()
    assert re.fullmatch("[0-9a-f]{64}", token)
    assert service.get("/api/v1/me", token=token).json["scope"] == "read"
    listed = regatta.json("token", "list")["tokens"]
    assert [(t["name"], t["scope"]) for t in listed] == [("grafana", "read")] and listed[0]["used_ms"]
    assert token not in regatta("token", "list").out and "grafana" in regatta("token", "list").out
    # They survive a restart, and so does when they were used.
    regatta("master", "--stop")
    again = start_service(regatta)
    assert regatta.json("token", "list")["tokens"] == listed
    assert again.get("/api/v1/me", token=token).status == 200
    regatta("token", "revoke", listed[0]["id"])
    assert again.get("/api/v1/me", token=token).status == 401
    assert "no token" in regatta("token", "revoke", listed[0]["id"], code=3).err
    assert "--scope" in regatta("token", "new", code=2).err
    assert "duration" in regatta("token", "new", "--scope", "read", "--expires", "soon", code=2).err
    assert "token list" in regatta("token", "revoke", code=2).err


def test_ui_prints_a_link_that_leads_in_once(regatta, service):
    url = regatta("ui").out.strip()
    assert url.startswith(f"{service.url}/login?code=")
    first = service.get(url[len(service.url):], token=None)
    assert first.status == 303 and first.headers["location"] == "/"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
    assert service.get("/api/v1/me", token=None, headers={"Cookie": cookie.split(";")[0]}).json["scope"] == "admin"
    assert cookie.startswith(f"regatta_session_{service.port}=")  # two masters do not take each other's
    again = service.get(url[len(service.url):], token=None)
    assert again.status == 403 and "set-cookie" not in again.headers
    reader = service.get(regatta("ui", "--scope", "read").out.strip()[len(service.url):], token=None)
    assert service.get("/api/v1/me", token=None,
                       headers={"Cookie": reader.headers["set-cookie"].split(";")[0]}).json["scope"] == "read"
