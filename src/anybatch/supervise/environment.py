"""The variables by which a supervisor tells its child what it must know before anything else."""

GROUP_VARIABLE = "ANYBATCH_GROUP"
"""The file of the memory group to join."""

PARENT_VARIABLE = "ANYBATCH_SUPERVISOR"
"""The process whose end is the child's end."""
