"""Deliveries to webhooks: sent, tried again, or moved to the dead letters."""
