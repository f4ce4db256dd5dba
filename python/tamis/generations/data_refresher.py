"""Data sets that are read again and again from their sources, by the settings.

A set is created when it is read for the first time. Records that are the same make no new version. A read
that fails is reported and tried again with exponential backoff, at the latest when the next one is due.
"""

import logging
import time
from collections.abc import Sequence

from tamis.catalog.data_sets import DataSets
from tamis.data.source import RefreshedData
from tamis.errors import TamisError
from tamis.generations.data_updater import DataUpdater
from tamis.model.backoff import Backoff
from tamis.model.data_set import NewDataSet

log = logging.getLogger(__name__)

FIRST_PAUSE = 5.0
"""Seconds before a failed read is tried again."""

TICK = 0.5
"""Seconds between two looks at what is due."""


class DataRefresher:
    """Reads data sets when they are due."""

    def __init__(self, settings: Sequence[RefreshedData], data: DataSets, updater: DataUpdater) -> None:
        self._settings = settings
        self._data = data
        self._updater = updater
        self._due = dict.fromkeys(settings, 0.0)
        self._backoffs = {one: Backoff(FIRST_PAUSE, one.interval) for one in settings}

    def run(self) -> None:
        """Refresh for ever."""
        while True:
            self.refresh_due()
            time.sleep(TICK)

    def refresh_due(self) -> None:
        """Read the sets whose time has come."""
        for one in self._settings:
            if time.monotonic() < self._due[one]:
                continue
            pause = one.interval
            try:
                self._refresh(one)
            except (TamisError, OSError) as error:
                pause = min(pause, self._backoffs[one].next())
                log.error("data %s: %s; trying again in %.0f s", one.name, error, pause)
            else:
                self._backoffs[one].reset()
            self._due[one] = time.monotonic() + pause

    def _refresh(self, one: RefreshedData) -> None:
        source = one.source
        self._data.create(NewDataSet(one.name, one.tenant, one.shared, one.key, one.index, str(source)))
        before = self._data.get(one.name, tenant=one.tenant).current
        now = self._updater.replace(one.name, source.records(), tenant=one.tenant, source=str(source)).current
        if now is not None and now != before:
            log.info("data %s: version %d with %d records", one.name, now.number, now.records)
