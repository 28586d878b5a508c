"""Takes the steps of demo.ts with requests or httpx. Arguments: the library, the origin."""
import json
import sys

library, origin = sys.argv[1:]
BODY = b"u" * 200_000
reports = {}


def pieces():
    for at in range(0, len(BODY), 30_000):
        yield BODY[at : at + 30_000]


def downloaded(reply):
    return f"{reply.status_code} {len(reply.content)} {reply.content[-3:].decode()}"


if library == "requests":
    import requests

    client = requests.Session()
    follow = "allow_redirects"
    without = requests
    send = {"data": BODY}
    chunks = {"data": pieces()}
else:
    import httpx

    connected = []
    client = httpx.Client(headers={"connection": "keep-alive"}, timeout=None)
    follow = "follow_redirects"
    without = httpx
    send = {"content": BODY}
    chunks = {"content": pieces()}


def text(reply):
    return f"{reply.status_code} {reply.text}"


reports["get"] = text(client.get(origin + "/echo", params={"q": 1}))
reports["encoded"] = text(client.get(origin + "/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y"))
reports["redirect"] = text(client.get(origin + "/redirect?status=302&to=/folder", **{follow: True}))
reports["redirect 307"] = text(client.put(origin + "/redirect?status=307&to=/upload", **send, **{follow: True}))
reports["cookies"] = text(client.get(origin + "/cookies/set", **{follow: True}))
reports["upload"] = text(client.post(origin + "/upload", **send))
reports["upload chunked"] = text(client.post(origin + "/upload", **chunks))
reports["download length"] = downloaded(client.get(origin + "/download/length"))
reports["download chunked"] = downloaded(client.get(origin + "/download/chunked"))
head = client.head(origin + "/download/length")
reports["head"] = f"{head.status_code} {head.headers['content-length']} {len(head.content)}"
none = client.delete(origin + "/none")
reports["no content"] = f"{none.status_code} {len(none.content)}"
tag = client.get(origin + "/tagged").headers["etag"]
known = client.get(origin + "/tagged", headers={"if-none-match": tag})
reports["not modified"] = f"{known.status_code} {known.headers['etag']} {len(known.content)}"
part = client.get(origin + "/range", headers={"range": "bytes=5-9"})
reports["range"] = f"{part.status_code} {part.headers['content-range']} {part.text}"
reports["gzip"] = text(client.get(origin + "/gzip"))
reports["refused"] = text(client.post(origin + "/refuse", **send))
busy = client.get(origin + "/busy")
reports["busy"] = f"{busy.status_code} {busy.headers['retry-after']} {busy.text}"
events = []
if library == "requests":
    stream = client.get(origin + "/events", stream=True)
    lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
    fresh = requests.Session()
    for _ in range(3):
        fresh.get(origin + "/echo")
    connections = fresh.get_adapter(origin).poolmanager.connection_from_url(origin).num_connections
else:
    stream = client.send(client.build_request("GET", origin + "/events"), stream=True)
    lines = stream.iter_lines()

    def trace(event, _info):
        if event == "connection.connect_tcp.started":
            connected.append(event)

    with httpx.Client() as fresh:
        for _ in range(3):
            fresh.get(origin + "/echo", extensions={"trace": trace})
    connections = len(connected)
for line in lines:
    line = line.strip()
    if line.startswith("data: "):
        events.append(line[6:])
    if len(events) == 3:
        break
stream.close()
reports["events"] = " ".join(events)
reports["keep-alive"] = f"3 requests, {connections} connection"
print(json.dumps(reports))
