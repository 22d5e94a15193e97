"""One file per theme; each says which contenders do what to which data set."""
