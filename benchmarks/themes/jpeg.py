"""Photographs as JPEG files, decoded and resized, page cache warm."""

from benchmarks.registry import Case, Theme
from benchmarks.roster import contenders

EVERYBODY = contenders("tf.data resize", "tf.data antialias", "tf.data ratio=2", "anybatch images")

THEME = Theme(
    "jpeg",
    "JPEG files decoded and resized, page cache warm",
    (Case("to_224", "512 x 512 JPEG to 224 x 224 x 3 uint8", "jpeg", "records", EVERYBODY, batch=64),),
)
