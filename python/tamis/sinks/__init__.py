"""The outside systems that deliveries and dead letters go to."""
