"""A shop: an order is reserved, waits for its payment, and is shipped; or everything is undone.

tables   the business: products, orders, transfers, in a schema of their own
bank     a bank that books each transfer once per idempotency key
jobs     the durable checkout
service  the HTTP service of the shop, with FastAPI
story    an evening in the shop, told by the running system
__main__ one command: Horai, a worker, the service, the story
"""
