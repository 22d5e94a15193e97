"""What pytest leaves alone here."""

# these need environments of their own
collect_ignore = [
    "contenders/grain_arrays.py",
    "contenders/grain_records.py",
    "contenders/pypi_tfrecord.py",
    "contenders/web_dataset.py",
]
