"""An article service (seeds 000 and 001): it owns what an article is, Horai decides when to try.

articles    what an article may become: the state machine, pure
store       its own tables, in its own database; every move is guarded
scheduler   Horai as the service knows it: four requests of its REST API
messenger   what Horai was not told yet is told again
signatures  who calls: a Standard Webhooks signature, and what it says of the attempt
callbacks   what Horai calls: audit, publish
authors     what authors call: write, submit, move the publish time, withdraw
desk        what every request works with
press       the slow part of publishing, which can be held up
service     the process
story       a day of an author, told by the running service
__main__    one command: Horai, the service, the story
"""
