"""What pytest leaves alone here."""

collect_ignore = ["contenders/grain_records.py"]  # needs an environment of its own
