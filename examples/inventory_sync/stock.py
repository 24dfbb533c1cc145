"""The stock system of another company: `python -m examples.inventory_sync.stock`.

It answers for one product at a time.

GET /stock/{code}    the quantity in stock: {"quantity": 7}
PUT /stock/{code}    the result of a count
"""

import socket

from aiohttp import web

COUNTED: "web.AppKey[dict[str, int]]" = web.AppKey("counted", dict[str, int])


async def look_up(request: web.Request) -> web.Response:
    """Return the quantity of one product."""
    code, counted = request.match_info["code"], request.app[COUNTED]
    if code not in counted:
        return web.json_response({"detail": f"Nobody has counted {code}."}, status=404)
    return web.json_response({"quantity": counted[code]})


async def count(request: web.Request) -> web.Response:
    """Store the result of a count; no other system is told."""
    request.app[COUNTED][request.match_info["code"]] = (await request.json())["quantity"]
    return web.Response(status=204)


def main() -> None:
    app = web.Application()
    app[COUNTED] = {}
    app.add_routes([web.get("/stock/{code}", look_up), web.put("/stock/{code}", count)])
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"Stock is served: http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    web.run_app(app, sock=listening, print=None)


if __name__ == "__main__":
    main()
