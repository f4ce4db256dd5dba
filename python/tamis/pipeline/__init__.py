"""What is written down of batches; no Spark here."""
