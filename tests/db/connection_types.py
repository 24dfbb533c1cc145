"""Calls that the type checker refuses, and calls that it accepts.

It reports a comment that ignores an error where there is none, so every line with such a comment is an error.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=error

from horai.db import jobs, nodes
from horai.db.pool import Dedicated, Platform, Pool, TenantPool, TenantRead, TenantWrite, acquire, transaction
from horai.operations.scope import PlatformScope, Scope


async def refused(read: TenantRead, write: TenantWrite, platform: Platform, bare: Dedicated) -> None:
    await jobs.lock_job(read, 1)  # pyright: ignore[reportArgumentType]
    await jobs.share_job(read, 1)  # pyright: ignore[reportArgumentType]
    await jobs.lock_job(platform, 1)  # pyright: ignore[reportArgumentType]
    await jobs.jobs_by_name(platform, 1, ["publish"])  # pyright: ignore[reportArgumentType]
    await nodes.stop_node(write, 1)  # pyright: ignore[reportArgumentType]
    await nodes.find_lost_nodes(read, 0)  # pyright: ignore[reportArgumentType]
    await jobs.find_job(bare, 1, "publish")  # pyright: ignore[reportArgumentType]
    await nodes.stop_node(bare, 1)  # pyright: ignore[reportArgumentType]


async def accepted(read: TenantRead, write: TenantWrite, platform: Platform) -> None:
    await jobs.jobs_by_name(read, 1, ["publish"])
    await jobs.jobs_by_name(write, 1, ["publish"])
    await jobs.find_job(read, 1, "publish")
    await jobs.find_job(platform, 1, "publish")
    await jobs.lock_job(write, 1)
    await jobs.share_job(write, 1)
    await jobs.share_job(platform, 1)
    await nodes.stop_node(platform, 1)


async def handed_out(scope: Scope, platform_scope: PlatformScope, pool: TenantPool, engines: Pool) -> None:
    async with scope.read() as read, platform_scope.read() as platform:
        await jobs.lock_job(read, 1)  # pyright: ignore[reportArgumentType]
        await jobs.jobs_by_name(platform, 1, ["publish"])  # pyright: ignore[reportArgumentType]
        await jobs.jobs_by_name(read, 1, ["publish"])
    async with scope.write() as write, platform_scope.write() as platform:
        await nodes.stop_node(write, 1)  # pyright: ignore[reportArgumentType]
        await nodes.stop_node(platform, 1)
        await jobs.lock_job(write, 1)
    async with acquire(pool) as read, transaction(pool) as write:
        await jobs.lock_job(read, 1)  # pyright: ignore[reportArgumentType]
        await jobs.lock_job(write, 1)
    async with acquire(engines) as platform:
        await jobs.jobs_by_name(platform, 1, ["publish"])  # pyright: ignore[reportArgumentType]
        await nodes.find_lost_nodes(platform, 0)
