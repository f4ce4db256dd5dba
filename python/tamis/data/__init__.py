"""Local data from files and databases: records that queries join with messages.

| module | what it reads |
|---|---|
| `reading` | a path: an XML file, whole or cut at an element; a folder of XML files; a table |
| `rows` | rows of any table → XML |
| `csv_file`, `parquet_file` | tables in files |
| `sql_query` | what a query of a database returns now |
| `source` | one of these, as settings and commands name it |
"""

from tamis.data.reading import read_data
from tamis.data.sql_query import read_query

__all__ = ["read_data", "read_query"]
