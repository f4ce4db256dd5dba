"""Sources and sinks as Spark sees them."""
