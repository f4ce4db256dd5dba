"""`/v1/data`: the local data of a tenant. Admins change it; all subscribers may use it."""

from datetime import datetime
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from tamis.model.data_set import DataSet, DataVersion
from tamis.service.api.security import Admin, Caller, Subscriber
from tamis.service.api.values import MAX_INTEGER, RequestModel, ResponseModel, Text, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service

router = APIRouter(prefix="/v1", tags=["data"])

FORMATS = {
    "application/xml": "xml",
    "text/xml": "xml",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
}
"""The end of a file's name by the media type of an upload."""

DataName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]

Named = Annotated[DataName, Path(description="The name of the data set, as queries name it.")]
Record = Annotated[
    Text | None, Query(description="The element of an XML body that each record is; the whole unless given.")
]

_VERSION = {
    "number": 2,
    "records": 10_000,
    "bytes": 1_482_044,
    "source": "companies.csv",
    "created": "2026-03-01T12:00:00Z",
}
_DATA = {
    "name": "companies",
    "shared": False,
    "key": "/row/symbol",
    "indexed": None,
    "current": _VERSION,
    "users": 3,
}


class DataVersionResponse(ResponseModel):
    """A version of a data set."""

    model_config = example(**_VERSION)

    number: int
    """From 1, in the order of the updates."""
    records: int
    """How many records it has."""
    bytes: int
    """The size of its files, with their index."""
    source: str
    """Where its records came from."""
    created: datetime
    """When it was uploaded."""

    @classmethod
    def of(cls, one: DataVersion) -> "DataVersionResponse":
        return cls(**{name: getattr(one, name) for name in cls.model_fields})


class DataResponse(ResponseModel):
    """A data set."""

    model_config = example(**_DATA)

    name: str
    """Its name in queries: `collection('name')`."""
    shared: bool
    """Whether the operator shares it with all tenants."""
    key: str | None
    """The path of the value that identifies a record; null if there is none."""
    indexed: list[str] | None
    """The paths whose values find records; null: all."""
    current: DataVersionResponse | None
    """The version that messages are joined with; null before the first one is complete."""
    users: int
    """How many subscriptions of the tenant name it."""

    @classmethod
    def of(cls, one: DataSet) -> "DataResponse":
        return cls(
            name=one.name,
            shared=one.shared,
            key=one.key,
            indexed=None if one.indexed is None else list(one.indexed),
            current=None if one.current is None else DataVersionResponse.of(one.current),
            users=one.users,
        )


class DataList(ResponseModel):
    """The data sets that the tenant can use, by name."""

    model_config = example(data=[_DATA])

    data: list[DataResponse]
    """Its own, and those that the operator shares."""


class DataDetails(DataResponse):
    """A data set with its versions and users."""

    model_config = example(**_DATA, versions=[_VERSION], subscriptions=["ann-1"])

    versions: list[DataVersionResponse]
    """The versions that are kept, the newest first."""
    subscriptions: list[str]
    """Subscriptions of the tenant that name it, up to 100; for a subscriber's token, none."""


class RecordList(ResponseModel):
    """Some records."""

    model_config = example(records=["<row><symbol>IBM</symbol></row>"])

    records: list[str]
    """Each an XML document."""


class RevertRequest(RequestModel):
    """Which version to go back to."""

    model_config = example(version=1)

    version: Annotated[int, Field(ge=1, le=MAX_INTEGER)] | None = None
    """Its number; the one before the current one unless given."""


_BODY = {
    "requestBody": {
        "required": False,
        "content": {
            "application/xml": {"schema": {"type": "string"}, "example": "<book><site id='7'/></book>"},
            "text/csv": {"schema": {"type": "string"}, "example": "symbol,name\nIBM,Big Blue\n"},
            "application/vnd.apache.parquet": {
                "schema": {"type": "string", "format": "binary"},
                "example": "PAR1…",
            },
        },
    }
}


@router.get("/data")
def list_(service: CurrentService, caller: Subscriber) -> DataList:
    """List the data sets that the tenant can use."""
    found = service.catalog.data.list(tenant=caller.tenant)
    return DataList(data=[DataResponse.of(one) for one in found])


@router.get("/data/{name}")
def show(name: Named, service: CurrentService, caller: Subscriber) -> DataDetails:
    """A data set, the versions that are kept, and the subscriptions that name it."""
    return _details(service, caller, name)


@router.get("/data/{name}/records")
def records(
    name: Named,
    service: CurrentService,
    caller: Subscriber,
    start: Annotated[
        int, Query(ge=0, le=MAX_INTEGER, description="The number of the first one, from 0.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=100, description="How many.")] = 10,
) -> RecordList:
    """Some records of the current version, in their order."""
    found = service.catalog.data.get(name, tenant=caller.tenant)
    return RecordList(records=list(service.data.preview(found, start, limit)))


@router.put("/data/{name}", openapi_extra=_BODY)
async def put(
    name: Named,
    request: Request,
    service: CurrentService,
    caller: Admin,
    key: Annotated[
        Text | None, Query(description="Of a new set: the path of the value that identifies a record.")
    ] = None,
    index: Annotated[
        list[Text] | None,
        Query(description="Of a new set: paths whose values find records; all by default."),
    ] = None,
    record: Record = None,
) -> DataDetails:
    """Replace all records, or create the data set. If the body is refused, the current version stays."""
    own = await run_in_threadpool(service.catalog.data.list, tenant=caller.tenant)
    present = next((one for one in own if one.name == name), None)
    if present is not None:
        _check_own(present)
    more = [f"--tenant={caller.tenant}", *_of_record(record)]
    if present is None:
        more += [] if key is None else [f"--key={key}"]
        more += [f"--index={path}" for path in index or ()]
    async with service.data.upload(request.stream(), _file_name(request, name)) as path:
        if path is None:
            raise ServiceError("bad-request", "the body is empty: send the records")
        verb = "add" if present is None else "update"
        await service.data.run(verb, name, *_file(path), *more, folder=path.parent)
    return await run_in_threadpool(_details, service, caller, name)


@router.post("/data/{name}/changes", openapi_extra=_BODY)
async def change(
    name: Named,
    request: Request,
    service: CurrentService,
    caller: Admin,
    delete: Annotated[list[Text] | None, Query(description="Keys of records to remove.")] = None,
    record: Record = None,
) -> DataDetails:
    """Add the records of the body, replace those with the same keys, and remove others."""
    _check_own(await run_in_threadpool(service.catalog.data.get, name, tenant=caller.tenant))
    more = [f"--tenant={caller.tenant}", *(f"--delete={key}" for key in delete or ())]
    async with service.data.upload(request.stream(), _file_name(request, name)) as path:
        if path is None:
            if not delete:
                raise ServiceError("bad-request", "send records, or name keys to `delete`")
            await service.data.run("update", name, *more)
        else:
            more += ["--upsert", *_of_record(record)]
            await service.data.run("update", name, *_file(path), *more, folder=path.parent)
    return await run_in_threadpool(_details, service, caller, name)


@router.post("/data/{name}/revert")
def revert(
    name: Named, service: CurrentService, caller: Admin, asked: RevertRequest | None = None
) -> DataDetails:
    """Go back to an older version that is kept, or forward again."""
    _check_own(service.catalog.data.get(name, tenant=caller.tenant))
    version = None if asked is None else asked.version
    service.catalog.data.revert(name, tenant=caller.tenant, version=version)
    return _details(service, caller, name)


@router.delete("/data/{name}", status_code=204)
def remove(name: Named, service: CurrentService, caller: Admin) -> Response:
    """Remove a data set that no subscription names."""
    _check_own(service.catalog.data.get(name, tenant=caller.tenant))
    service.catalog.data.remove(name, tenant=caller.tenant)
    return Response(status_code=204)


def _details(service: Service, caller: Caller, name: str) -> DataDetails:
    data = service.catalog.data
    one = DataResponse.of(data.get(name, tenant=caller.tenant))
    users = data.users(name, tenant=caller.tenant)
    one.users = len(users) if one.shared else one.users
    versions = [DataVersionResponse.of(version) for version in data.versions(name, tenant=caller.tenant)]
    own = [] if caller.subscriber is not None else list(users)
    return DataDetails(
        **one.model_dump(exclude={"current"}), current=one.current, versions=versions, subscriptions=own
    )


def _check_own(present: DataSet) -> None:
    if present.shared:
        raise ServiceError("forbidden", f"the operator shares {present.name}: only `tamis data` changes it")


def _file(path: FilePath) -> list[str]:
    return [str(path), f"--source={path.name}"]


def _of_record(record: str | None) -> list[str]:
    return [] if record is None else [f"--record={record}"]


def _file_name(request: Request, name: str) -> str:
    kind = request.headers.get("content-type", "application/xml").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise ServiceError("media-type", f"Content-Type {kind}: send {', '.join(FORMATS)}")
    return f"{name}.{FORMATS[kind]}"
