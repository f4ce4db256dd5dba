"""Files that appear whole or not at all, locks between processes, directories and URLs.

files.py     atomic files, locks
lines.py     a log of JSON lines
place.py     a directory or a URL
failures.py  file-system errors with a code
"""
