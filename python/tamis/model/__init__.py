"""Values without behaviour of their own: light to import, and known to every layer above."""
