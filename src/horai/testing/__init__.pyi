from horai.testing.clients import NotEnded as NotEnded
from horai.testing.harness import Harness as Harness
from horai.testing.journal import Fired as Fired
from horai.testing.sync import SyncTime as SyncTime
from horai.testing.virtual_time import VirtualTime as VirtualTime
from horai.testing.workplace import Stuck as Stuck
