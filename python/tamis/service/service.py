"""What the operations of the service stand on, in one place."""

from typing import Annotated

from fastapi import Depends, Request

from tamis.catalog import Catalog
from tamis.service.newest import Newest
from tamis.service.publishing import Publishing
from tamis.settings import DirectorySink, Settings


class Service:
    """A running service: the catalog, and what is kept beside it."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self.settings = settings
        self.catalog = catalog
        self.publishing = Publishing(catalog.accepted, settings.sources, settings.serve.backlog)
        self.newest = Newest(settings)

    @property
    def targets(self) -> frozenset[str]:
        """Delivery targets that a sink of their own is there for: what has another one waits in a mailbox."""
        return frozenset(target for sink in self.settings.sinks for target in sink.targets or ())

    @property
    def outbox(self) -> DirectorySink | None:
        """Where the deliveries come from that go to mailboxes: an outbox that has all of them, as rows."""
        for sink in self.settings.sinks:
            if isinstance(sink, DirectorySink) and sink.targets is None and sink.form != "xml":
                return sink
        return None


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Running = Annotated[Service, Depends(_service)]
