"""The service, `tamis serve`: the only importer of FastAPI and uvicorn."""
