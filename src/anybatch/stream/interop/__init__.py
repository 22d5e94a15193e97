"""Streams as the objects of other libraries, each of which is imported in its own file and nowhere else."""
