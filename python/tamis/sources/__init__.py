"""The outside systems that messages come from: one file for each concept of one."""
