"""Exhibitions (seed 004): what is approved starts its enrolment at its time, and visitors are told.

tables   the business: exhibitions, reservations, letters, in a schema of their own
jobs     what happens at its time: enrolment starts, letters are written
desk     what people do: hand in, approve, move, withdraw; each in one transaction with what it plans
story    an afternoon at the desk, told by the running system
__main__ one command: Horai, a worker, the story
"""
