"""The job and the service in processes of their own, measured from outside."""
