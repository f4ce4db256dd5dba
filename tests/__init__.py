"""The Python tests, a folder for each part of the code; `helpers` has shared code."""
