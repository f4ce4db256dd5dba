"""The Python tests, in rooms; `helpers` has what they share."""
