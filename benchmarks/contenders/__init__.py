"""One file per family of contenders; each is imported only in the process that runs it."""
