"""Photographs as JPEG files, decoded and resized, page cache warm."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

# the limit has no decoding in it, and is therefore far away
EVERYBODY = contenders(
    "tf.data resize", "tf.data antialias", "tf.data ratio=2", "anybatch images", "bare limit, all cores"
)

THEME = Theme(
    "jpeg",
    "JPEG files decoded and resized, page cache warm",
    (Case("to_224", "512 x 512 JPEG to 224 x 224 x 3 uint8", "jpeg", "records", EVERYBODY, batch=64),),
)
