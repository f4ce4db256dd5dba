"""What runs in Python workers: Arrow batches in, Arrow batches out."""
