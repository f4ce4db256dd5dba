"""Files that appear whole or not at all, locks between processes, directories and URLs."""
