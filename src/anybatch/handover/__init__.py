"""The files through which a supervising parent and a training child talk: either of them may be dead.

| file | written by | says |
|---|---|---|
| `orders.json` | parent | limit, largest part, attempt, where state goes |
| `heartbeat.json` | child | step, part and bytes, about twice a second |
| `last-words.json` | child | the exception that ended it |
| `journal.jsonl` | parent | every attempt: its beginning, its end and why |

Each file appears whole and carries a checksum; what is damaged reads as if it were not there.
"""

from anybatch.handover.disk import DISK, TEMPORARY_ENDING, Disk, place
from anybatch.handover.heartbeat import Heartbeat, Pulse, forget_pulse, read_pulse
from anybatch.handover.journal import Journal
from anybatch.handover.last_words import LastWords, last_words_of, read_last_words, reserve_last_words
from anybatch.handover.lock import Occupied, alone_in
from anybatch.handover.orders import (
    FOLDER_VARIABLE,
    OWNER_VARIABLE,
    Orders,
    new_run,
    own_papers,
    read_orders,
    received_orders,
)
from anybatch.handover.sealed import Json, read_sealed, sealed, unsealed, write_sealed

__all__ = [
    "DISK",
    "FOLDER_VARIABLE",
    "OWNER_VARIABLE",
    "TEMPORARY_ENDING",
    "Disk",
    "Heartbeat",
    "Journal",
    "Json",
    "LastWords",
    "Occupied",
    "Orders",
    "Pulse",
    "alone_in",
    "forget_pulse",
    "last_words_of",
    "new_run",
    "own_papers",
    "place",
    "read_last_words",
    "read_orders",
    "read_pulse",
    "read_sealed",
    "received_orders",
    "reserve_last_words",
    "sealed",
    "unsealed",
    "write_sealed",
]
