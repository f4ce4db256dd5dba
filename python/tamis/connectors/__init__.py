"""The outside systems that messages come from and deliveries go to."""
