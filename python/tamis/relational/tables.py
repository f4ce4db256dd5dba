"""The tables of a set of subscriptions: Parquet files and a manifest in a directory of their own.

| table | rows | in the seed (004) |
|---|---|---|
| `alternatives` | a conjunction of lines, with the places of anchors | Predicate_Unroll, Query_BranchPoint |
| `linear_paths` | the paths of lines, and how many lines use them | Query_Linear_Path |
| `subscriptions` | the targets of each query | the final `chain_id` |
| `path_match` | which tag paths match which linear paths, and where | PathMatch, TagPath_BrInfo |
| `tag_paths` | the tag paths of messages seen so far | TagPath_Map |

Every change writes files of its own, numbered: rows that were added, and the queries and targets that are
gone. A row is live if no later file says that it is gone. So the rows written follow the change, and the live
rows are those of a rebuild. Nothing in a row depends on when it was written: hashes are the ids.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.engine import Namespaces
from tamis.errors import TamisError
from tamis.model.version import Version
from tamis.relational.alternative import NUMBER, PATH, TEXT, Decomposed, RefusedQuery, decomposed
from tamis.relational.path_match import LinearPath, PathMatcher, path_match_schema
from tamis.relational.schemas import COUNTED_USES, query_key, schemas, signed, tag_paths_schema
from tamis.storage.files import atomic_file

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
CHUNK = 10_000
"""Queries that are decomposed at once."""

MAX_TAG_PATHS = 100_000
"""Tag paths that are remembered; messages with others are matched by the kernel."""

MANIFEST = "manifest.json"


class TablesError(TamisError):
    """Tables that cannot be used: `code` says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """The files of one change, by table; `gone` are removed before the rows are added."""

    number: int
    files: Mapping[str, str]
    rows: Mapping[str, int]


@dataclass(slots=True)
class Tables:
    """The tables in a directory."""

    directory: Path
    catalog: str = ""
    """The identity of the catalog that they show, if it is one."""
    version: Version | None = None
    """Its version."""
    changes: list[Change] = field(default_factory=list)

    @classmethod
    def create(cls, directory: Path) -> "Tables":
        """Empty tables in a new directory."""
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / MANIFEST).exists():
            raise TablesError("tables-exist", f"{directory} has tables already: open them")
        tables = cls(directory)
        tables._publish()
        return tables

    @classmethod
    def open(cls, directory: Path) -> "Tables":
        """The tables of a directory, checked."""
        try:
            content = json.loads((directory / MANIFEST).read_text("utf-8"))
        except FileNotFoundError as error:
            raise TablesError("no-tables", f"{directory} has no {MANIFEST}: build the tables") from error
        except ValueError as error:
            raise TablesError(
                "tables-damaged", f"{directory / MANIFEST} is no JSON: build the tables again"
            ) from error
        if not isinstance(content, dict) or content.get("kind") != "tamis relational tables":
            raise TablesError("tables-foreign", f"{directory / MANIFEST} was not written by tamis")
        if content.get("format") != FORMAT:
            raise TablesError(
                "tables-format",
                f"the tables of {directory} have format {content.get('format')}; "
                f"this version reads {FORMAT}: build them again",
            )
        changes = [Change(**change) for change in content["changes"]]
        version = None if content["version"] is None else Version(**content["version"])
        tables = cls(directory, content["catalog"], version, changes)
        for change in changes:
            for name, file in change.files.items():
                if not (directory / file).is_file():
                    raise TablesError(
                        "tables-damaged", f"{directory / file} ({name}) is missing: build the tables again"
                    )
        return tables

    def require(self, catalog: str, version: Version) -> None:
        """Refuse tables that do not show this version of this catalog."""
        if self.catalog != catalog or self.version is None:
            raise TablesError("tables-foreign", f"the tables of {self.directory} are not of this catalog")
        if self.version != version:
            older = self.version.count <= version.count
            raise TablesError(
                "tables-old" if older else "tables-new",
                f"the tables show version {self.version.count} of the catalog, and the generation has "
                f"{version.count}: " + ("build the tables" if older else "use a newer generation"),
            )

    def change(
        self,
        added: "pa.Table | None",
        removed: Sequence[int] = (),
        *,
        catalog: str = "",
        version: Version | None = None,
        namespaces: Namespaces | Sequence[Namespaces | None] | None = None,
    ) -> list[RefusedQuery]:
        """Add rows `target`, `query` and, optionally, `tenant` and `prefixes`, and remove targets.

        A target that is added again replaces the one before. Returns the refused rows of `added`, by place.
        """
        import pyarrow as pa

        new, refused = _new_queries(added, namespaces)
        before = self.subscriptions()
        replaced = {row[0] for row in new} | set(removed)
        gone = [row for row in before.to_pylist() if row["target"] in replaced] if replaced else []
        left = _count(
            (row["tenant"], row["query"]) for row in before.to_pylist() if row["target"] not in replaced
        )
        kept_or_new = dict(left)
        rows: dict[str, list[dict[str, Any]]] = {"alternatives": [], "subscriptions": [], "linear_paths": []}
        fresh: set[tuple[str, int]] = set()
        ids = dict(zip(_keys(before), before.column("id").to_pylist(), strict=True))
        for target, tenant, one in new:
            key = (tenant, query_key(one.id))
            if ids.setdefault(key, one.id) != one.id:
                raise TablesError("query-hash", f"two queries of tenant {tenant!r} have the hash {key[1]}")
            rows["subscriptions"].append(
                {"tenant": tenant, "query": key[1], "id": one.id, "target": signed(target)}
            )
            if key in kept_or_new or key in fresh:
                continue
            fresh.add(key)
            rows["alternatives"] += [{"tenant": tenant, "query": key[1], **row} for row in one.rows]
            rows["linear_paths"] += _uses(one.rows, one.paths, 1)
        dead = {(row["tenant"], row["query"]) for row in gone} - set(left)
        rows["linear_paths"] += self._uses_of(dead)
        gone_rows = {
            "gone_targets": [{"target": row["target"]} for row in gone],
            "gone_queries": [{"tenant": tenant, "query": query} for tenant, query in sorted(dead)],
        }
        rows["linear_paths"] = _summed(rows["linear_paths"])
        number = self.changes[-1].number + 1 if self.changes else 1
        files, counts = {}, {}
        for name, content in {**rows, **gone_rows}.items():
            if content:
                schema = schemas()[name]
                columns = [pa.field("change", pa.int32()), *schema]
                table = pa.Table.from_pylist(
                    [{"change": number, **row} for row in content], pa.schema(columns)
                )
                files[name] = self._write(name, number, table)
                counts[name] = len(content)
        self.changes.append(Change(number, files, counts))
        self.catalog, self.version = catalog, version
        self._publish()
        return refused

    def compact(self) -> None:
        """Write the live rows of all changes as one."""
        tables = {name: self.live(name) for name in ("alternatives", "subscriptions", "linear_paths")}
        old = [file for change in self.changes for file in change.files.values()]
        number = self.changes[-1].number + 1 if self.changes else 1
        files = {}
        for name, table in tables.items():
            if table.num_rows:
                at = table.schema.get_field_index("change")
                import pyarrow as pa

                table = table.set_column(
                    at, table.field(at), pa.repeat(pa.scalar(number, pa.int32()), len(table))
                )
                files[name] = self._write(name, number, table)
        rows = {name: tables[name].num_rows for name in files}
        self.changes = [Change(number, files, rows)]
        self._publish()
        for file in old:
            (self.directory / file).unlink(missing_ok=True)

    def files(self, name: str) -> list[str]:
        """The Parquet files of a table."""
        return [str(self.directory / change.files[name]) for change in self.changes if name in change.files]

    def read(self, name: str) -> "pa.Table":
        """All rows of a table, also those that are gone."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([pa.field("change", pa.int32()), *schemas()[name]])
        try:
            return pa.concat_tables(
                [schema.empty_table(), *(pq.read_table(file) for file in self.files(name))]
            )
        except (OSError, pa.ArrowInvalid) as error:
            raise TablesError(
                "tables-damaged", f"{self.directory}: {error}: build the tables again"
            ) from error

    def live(self, name: str) -> "pa.Table":
        """The rows of a table that are not gone."""
        import pyarrow as pa

        pc: Any = pa.compute
        rows = self.read(name)
        if name == "linear_paths":
            keys = ["path", "text", "kind", "steps"]
            summed = rows.group_by(keys).aggregate(
                [
                    ("change", "max"),
                    *((one, "sum") for one in COUNTED_USES),
                ]
            )
            summed = summed.rename_columns(
                [column.removesuffix("_sum").removesuffix("_max") for column in summed.column_names]
            )
            return (
                summed.filter(pc.greater(summed.column("users"), 0))
                .select(rows.column_names)
                .cast(rows.schema)
            )
        keys = {"alternatives": ["tenant", "query"], "subscriptions": ["target"]}[name]
        gone = self.read({"alternatives": "gone_queries", "subscriptions": "gone_targets"}[name])
        if gone.num_rows == 0:
            return rows
        last = gone.group_by(keys).aggregate([("change", "max")])
        numbered = rows.append_column("row", pa.array(range(rows.num_rows)))
        joined = numbered.select([*keys, "change", "row"]).join(last, keys, join_type="left outer")
        is_live = pc.fill_null(pc.greater_equal(joined.column("change"), joined.column("change_max")), True)
        places = joined.filter(is_live).column("row").sort()
        return rows.take(places)

    def subscriptions(self) -> "pa.Table":
        """The live targets and their queries."""
        return self.live("subscriptions")

    def linear_paths(self) -> dict[int, LinearPath]:
        """The linear paths in use, by their hashes."""
        rows = self.live("linear_paths")
        columns = (rows.column(name).to_pylist() for name in ("path", "text", "kind", "steps"))
        return {path: (text, kind, steps) for path, text, kind, steps in zip(*columns, strict=True)}

    def path_matches(self, tag_paths: Mapping[int, str]) -> "tuple[pa.Table, set[int]]":
        """The matches of tag paths, and those past the limit; the cache grows by new ones.

        `tag_paths` are texts by their hashes.
        """
        import pyarrow as pa

        linear = self.linear_paths()
        known, matches = self._cached_matches(linear)
        for hash_, text in tag_paths.items():
            if known.get(hash_, text) != text:
                raise TablesError("path-hash", f"the tag paths {known[hash_]!r} and {text!r} have one hash")
        new = {hash_: text for hash_, text in tag_paths.items() if hash_ not in known}
        room = max(0, MAX_TAG_PATHS - len(known))
        added = dict(list(new.items())[:room])
        if added:
            matches = pa.concat_tables([matches, PathMatcher(linear).match(added)])
            known |= added
            folder = self._cache_folder(linear)
            folder.mkdir(parents=True, exist_ok=True)
            table = pa.table({"path": list(known), "text": list(known.values())}, schema=tag_paths_schema())
            _write_table(folder / "path_match.parquet", matches)
            _write_table(folder / "tag_paths.parquet", table)
            for other in (self.directory / "paths").iterdir():
                if other != folder:
                    # Of linear paths that are no longer those in use.
                    shutil.rmtree(other, ignore_errors=True)
        return matches, set(new) - set(added)

    def forget(self, tag_path: str) -> bool:
        """Remove a tag path and its matches from the cache; whether it was there."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pc: Any = pa.compute
        linear = self.linear_paths()
        known, matches = self._cached_matches(linear)
        hashes = [hash_ for hash_, text in known.items() if text == tag_path]
        for hash_ in hashes:
            folder = self._cache_folder(linear)
            left = matches.filter(pc.not_equal(matches.column("tag_path"), hash_))
            table = pq.read_table(folder / "tag_paths.parquet")
            kept = table.filter(pc.not_equal(table.column("path"), hash_))
            _write_table(folder / "tag_paths.parquet", kept)
            _write_table(folder / "path_match.parquet", left)
        return bool(hashes)

    def tag_paths(self) -> dict[int, str]:
        """The tag paths in the cache, by their hashes."""
        return self._cached_matches(self.linear_paths())[0]

    def _cached_matches(self, linear: Mapping[int, LinearPath]) -> "tuple[dict[int, str], pa.Table]":
        import pyarrow.parquet as pq

        folder = self._cache_folder(linear)
        if not (folder / "tag_paths.parquet").exists():
            return {}, path_match_schema().empty_table()
        known = pq.read_table(folder / "tag_paths.parquet").to_pydict()
        matches = pq.read_table(folder / "path_match.parquet")
        return dict(zip(known["path"], known["text"], strict=True)), matches

    def _cache_folder(self, linear: Mapping[int, LinearPath]) -> Path:
        """Where the matches of a set of linear paths are."""
        from hashlib import sha256

        name = sha256(repr(sorted(linear)).encode()).hexdigest()[:24]
        return self.directory / "paths" / name

    def _uses_of(self, dead: set[tuple[str, int]]) -> list[dict[str, Any]]:
        """What queries that go no longer use."""
        if not dead:
            return []
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self.live("alternatives")
        wanted = pa.array([query for _, query in dead], pa.int64())
        found = rows.filter(pc.is_in(rows.column("query"), wanted)).to_pylist()
        found = [row for row in found if (row["tenant"], row["query"]) in dead]
        return _uses(found, self.linear_paths(), -1)

    def _write(self, name: str, number: int, table: "pa.Table") -> str:
        file = f"{number:06}-{name}.parquet"
        _write_table(self.directory / file, table)
        return file

    def _publish(self) -> None:
        content = {
            "kind": "tamis relational tables",
            "format": FORMAT,
            "catalog": self.catalog,
            "version": None if self.version is None else asdict(self.version),
            "changes": [{"number": one.number, "files": one.files, "rows": one.rows} for one in self.changes],
        }
        with atomic_file(self.directory / MANIFEST) as draft:
            draft.write_text(json.dumps(content, indent=1), "utf-8")


def _write_table(path: Path, table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    with atomic_file(path) as draft:
        pq.write_table(table, draft)


def _new_queries(
    added: "pa.Table | None", namespaces: Namespaces | Sequence[Namespaces | None] | None
) -> tuple[list[tuple[int, str, Decomposed]], list[RefusedQuery]]:
    """The targets, tenants and queries of rows; the last row of a target counts."""
    refused: list[RefusedQuery] = []
    found: dict[int, tuple[str, Decomposed]] = {}
    if added is None:
        return [], refused
    maps = [namespaces] if namespaces is None or isinstance(namespaces, Mapping) else list(namespaces)
    names = added.column_names
    for start in range(0, added.num_rows, CHUNK):
        piece = added.slice(start, CHUNK).to_pydict()
        count = len(piece["query"])
        tenants = piece["tenant"] if "tenant" in names else [""] * count
        of_map: dict[int, list[int]] = {}
        for at, prefixes in enumerate(piece["prefixes"] if "prefixes" in names else [0] * count):
            of_map.setdefault(prefixes, []).append(at)
        for prefixes, places in of_map.items():
            for one in decomposed([piece["query"][at] for at in places], maps[prefixes]):
                at = places[one.query]
                if isinstance(one, RefusedQuery):
                    refused.append(RefusedQuery(start + at, one.code, one.reason))
                else:
                    found[piece["target"][at]] = (tenants[at], one)
    return [(target, tenant, one) for target, (tenant, one) in found.items()], refused


def _uses(
    rows: Iterable[Mapping[str, Any]], paths: Mapping[int, LinearPath], sign: int
) -> list[dict[str, Any]]:
    """How often rows use linear paths: at all, and as what the first join looks up."""
    uses = []
    for row in rows:
        for at, line in enumerate((*row["lines"], *row["negative"])):
            text, kind, steps = paths[line["path"]]
            access = row["access"] if at == 0 and row["lines"] else None
            uses.append(
                {
                    "path": line["path"],
                    "text": text,
                    "kind": kind,
                    "steps": steps,
                    "users": sign,
                    "texts": sign * (access == TEXT),
                    "numbers": sign * (access == NUMBER),
                    "paths": sign * (access == PATH),
                    "ranges": sign * is_range(line),
                }
            )
    return uses


def is_range(line: Mapping[str, Any]) -> bool:
    """Whether a line compares a value by its order."""
    return line["operator"] in ("<", "<=", ">", ">=") and not line["subject"].endswith("position")


def _summed(uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    total: dict[int, dict[str, Any]] = {}
    for use in uses:
        known = total.setdefault(use["path"], use)
        if known is not use:
            if known["text"] != use["text"]:
                raise TablesError(
                    "path-hash", f"the linear paths {known['text']!r} and {use['text']!r} have one hash"
                )
            for name in COUNTED_USES:
                known[name] += use[name]
    return [use for use in total.values() if any(use[name] for name in COUNTED_USES)]


def _count(keys: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return counts


def _keys(subscriptions: "pa.Table") -> Iterable[tuple[str, int]]:
    columns = (subscriptions.column(name).to_pylist() for name in ("tenant", "query"))
    return zip(*columns, strict=True)
