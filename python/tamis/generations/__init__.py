"""From the catalog to generations, and from there to every worker."""
