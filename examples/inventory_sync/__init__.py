"""Inventory (seed 003): the shop shows how many there are of each product; only the stock system knows, one at a time.

stock        the stock system: its people count when they like, and it answers for one product at a time
product.sql  the shop's own table, which Horai follows: its rows are what is refreshed
products     the product service: the table, and the job that asks for one product
story        three months in the shop, on a virtual clock
__main__     one command: the stock system as a process, the story
"""
