"""`tamis serve`: the HTTP service, with the page at `/`, and the job beside it.

app.py           puts the application together: routers, access control, request log
server.py        the HTTP server, uvicorn; connections.py: its connections, with time-outs
service.py       the running service: the catalog and the background tasks
api/             the operations, a file per resource
page/            the page: HTML, CSS and JavaScript as they are sent
background/      tasks beside the requests: the job, mailboxes, cleanup
webhooks/        deliveries to webhooks, with retries
inbox_writer.py  published messages → an inbox, durable before the response
newest.py        the newest generation, for trying messages
threads.py       pools for blocking work
errors.py        all errors in one JSON form; logs.py: JSON lines; metrics.py: Prometheus
"""
