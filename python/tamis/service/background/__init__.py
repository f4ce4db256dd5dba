"""Tasks that run beside the requests.

polling.py          the loop of every background task
supervisor.py       starts the job `tamis run` as a child process, and restarts it with backoff
outbox_follower.py  published batches of the outbox → mailboxes and the queue of webhooks
notifier.py         wakes up requests and the sender when there may be something new for them
cleanup.py          deletes what is older than `keep` days
lag.py              how far the job has read a source
"""
