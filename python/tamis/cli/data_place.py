"""What the commands of local data do, on a catalog with its store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tamis.catalog import Catalog
from tamis.data.source import DataSource
from tamis.errors import TamisError
from tamis.generations.data_updater import DataUpdater, preview
from tamis.generations.store import Store
from tamis.model.data_set import DataSet, DataVersion, NewDataSet
from tamis.model.progress import Report
from tamis.settings import Settings


class DataPlace:
    """The data of a catalog."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._data = catalog.data
        self._store = Store(settings.generations)
        self._updater = DataUpdater(catalog.data, self._store, settings.state / "data")

    def add(self, new: NewDataSet, source: DataSource, report: Report) -> DataSet:
        created = self._data.create(new)
        try:
            return self.replace(new.name, new.tenant, source, report, new.source)
        except (TamisError, OSError):
            if created.current is None:
                self._data.remove(new.name, tenant=new.tenant)
            raise

    def replace(
        self, name: str, tenant: str, source: DataSource, report: Report, described: str | None = None
    ) -> DataSet:
        return self._updater.replace(
            name, source.records(), tenant=tenant, source=described or str(source), report=report
        )

    def change(
        self,
        name: str,
        tenant: str,
        upserts: DataSource | None,
        deletes: Sequence[str],
        report: Report,
        described: str | None = None,
    ) -> DataSet:
        records = () if upserts is None else upserts.records()
        described = described or ("" if upserts is None else str(upserts))
        return self._updater.change(
            name, upserts=records, deletes=deletes, tenant=tenant, source=described, report=report
        )

    def list(self, tenant: str | None) -> Sequence[DataSet]:
        return self._data.list(tenant=tenant)

    def get(self, name: str, tenant: str) -> DataSet:
        return self._data.get(name, tenant=tenant)

    def versions(self, name: str, tenant: str) -> Sequence[DataVersion]:
        return self._data.versions(name, tenant=tenant)

    def users(self, one: DataSet, tenant: str) -> Sequence[str]:
        return self._data.users(one.name, tenant=tenant)

    def preview(self, name: str, tenant: str, count: int) -> Sequence[str]:
        current = self._data.get(name, tenant=tenant).current
        return [] if current is None else preview(self._store, current, count)

    def revert(self, name: str, tenant: str, version: int | None) -> DataSet:
        return self._data.revert(name, tenant=tenant, version=version)

    def remove(self, name: str, tenant: str) -> bool:
        return self._data.remove(name, tenant=tenant)


@contextmanager
def local_data(settings: Settings) -> Iterator[DataPlace]:
    """The data of the catalog of some settings."""
    with Catalog(settings.catalog) as catalog:
        yield DataPlace(catalog, settings)
