"""The application of the worker: put your own functions here, or build an image that contains them."""

from horai import Horai

app = Horai("example")


@app.job(cron="0 */5 * * * ?")
async def greet() -> str:
    """Run every five minutes."""
    return "hello"
