"""The experiments of seed 001 §6.7."""
