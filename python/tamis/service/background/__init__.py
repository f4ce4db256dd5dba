"""What runs beside the requests."""
