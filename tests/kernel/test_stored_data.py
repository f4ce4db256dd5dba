"""Local data in files: versions, changes by record key, what is shared, damage."""

from pathlib import Path
from random import Random

import pytest

import tamis
from tamis import DataError, Index
from tamis.model.data import DataFiles
from tamis.stored_data import build_data, change_data, open_data, rebuild_data


def row(key: object, value: object) -> bytes:
    return f"<row><id>{key}</id><v>{value}</v></row>".encode()


def rows(count: int) -> list[bytes]:
    return [row(place, place % 7) for place in range(count)]


def build(folder: Path, records: list[bytes], key: str | None = "/row/id") -> DataFiles:
    middle = len(records) // 2
    return build_data(folder, [records[:middle], records[middle:]], key=key)


def stored(folder: Path, files: DataFiles) -> list[bytes]:
    return list(open_data(folder, files.manifest))


def found(folder: Path, files: DataFiles, value: object) -> list[bytes]:
    """The ids of the records that a query finds by a value."""
    index = Index()
    index.attach("r", open_data(folder, files.manifest))
    index.insert(1, "for $r in collection('r')/row[v = $msg/m] return $r/id/text()")
    outputs = index.transform(f"<m>{value}</m>".encode())
    return [output.payload or b"" for output in outputs]


def test_a_version_is_files_named_by_their_content(tmp_path: Path) -> None:
    files = build(tmp_path, rows(10))
    assert (files.records, files.segments, files.removed) == (10, 1, 0)
    assert files.files[-1][0] == files.manifest
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == dict(files.files)
    assert files.bytes == sum(sizes.values())
    assert build(tmp_path / "again", rows(10)) == files
    data = open_data(tmp_path, files.manifest)
    assert (len(data), data.key, data.indexed) == (10, "/row/id", None)
    assert list(data) == rows(10)
    assert list(data.records(3, 2)) == rows(10)[3:5]
    assert list(data.records(9, 5)) == rows(10)[9:]
    assert list(data.records(10)) == []


def test_no_records_are_a_version_too(tmp_path: Path) -> None:
    files = build(tmp_path, [])
    assert (files.records, stored(tmp_path, files)) == (0, [])
    files = change_data(tmp_path, files.manifest, upserts=[[row(1, 1)]])
    assert stored(tmp_path, files) == [row(1, 1)]


def test_changes_keep_the_place_of_records_and_add_new_ones_last(tmp_path: Path) -> None:
    base = build(tmp_path, rows(5))
    files = change_data(
        tmp_path, base.manifest, upserts=[[row(9, "new"), row(3, "other")]], deletes=["1", "77"]
    )
    assert stored(tmp_path, files) == [row(0, 0), row(2, 2), row(3, "other"), row(4, 4), row(9, "new")]
    assert files.records == 5
    # Removed and added again: at the end.
    files = change_data(tmp_path, files.manifest, upserts=[[row(1, 8)]])
    assert stored(tmp_path, files)[-1] == row(1, 8)
    assert found(tmp_path, files, "other") == [b"3"]
    assert found(tmp_path, files, 3) == []
    # The older version is still there.
    assert stored(tmp_path, base) == rows(5)
    assert change_data(tmp_path, base.manifest, deletes=["77"]).manifest == base.manifest


@pytest.mark.parametrize("seed", range(8))
def test_changed_data_equals_data_built_anew(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    truth: dict[int, bytes] = {key: row(key, key % 7) for key in range(random.choice([0, 30, 300]))}
    files = build(tmp_path, list(truth.values()))
    for _ in range(25):
        deletes = [key for key in truth if random.random() < 0.05]
        upserts = {
            key: row(key, random.randrange(7))
            for key in random.sample(range(400), random.choice([0, 1, 5, 40]))
            if key not in deletes
        }
        for key in deletes:
            del truth[key]
        truth.update(upserts)
        chunks = [list(upserts.values())]
        files = change_data(tmp_path, files.manifest, upserts=chunks, deletes=map(str, deletes))
        assert files.records == len(truth)
    assert stored(tmp_path, files) == list(truth.values())
    anew = build(tmp_path / "anew", list(truth.values()))
    for value in range(7):
        assert found(tmp_path, files, value) == found(tmp_path / "anew", anew, value)
    assert files.segments <= 6


def test_small_changes_make_small_segments(tmp_path: Path) -> None:
    files = build(tmp_path, rows(1000))
    base = files.files[0]
    for step in range(10):
        files = change_data(tmp_path, files.manifest, upserts=[[row(step, "x")]], deletes=[str(500 + step)])
        assert files.files[0] == base
        assert files.segments <= 4
    assert (files.records, files.removed) == (990, 30)


@pytest.mark.parametrize(
    ("records", "code", "reason"),
    [
        ([row(1, 2), row(2, 2), row(1, 3)], "duplicate-key", 'records 1 and 3 have the key "1"'),
        ([row(1, 2), b"<row/>"], "missing-key", "record 2 has 0 values of its key /row/id, not one"),
        ([b"<row><id/><id/></row>"], "missing-key", "record 1 has 2 values"),
        ([row(1, 2), b"<row>"], "unclosed-element", "record 2: line 1"),
    ],
)
def test_records_that_are_refused(tmp_path: Path, records: list[bytes], code: str, reason: str) -> None:
    with pytest.raises(DataError) as refused:
        build_data(tmp_path, [records[:1], records[1:]], key="/row/id")
    assert refused.value.code == code
    assert reason in refused.value.reason
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["row", "/", "/row/", "/@id", "/row/@id/x", "//row", "/row[1]", "/a b"])
def test_a_key_is_a_path_of_names(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError) as refused:
        build_data(tmp_path, [], key=path)
    assert refused.value.code == "bad-key-path"


def test_changes_that_are_refused(tmp_path: Path) -> None:
    files = build(tmp_path, rows(3))
    with pytest.raises(DataError, match=r"duplicate-key.*records 1 and 2 have the key"):
        change_data(tmp_path, files.manifest, upserts=[[row(7, 1), row(7, 2)]])
    with pytest.raises(DataError, match=r"duplicate-key.*is removed, too"):
        change_data(tmp_path, files.manifest, upserts=[[row(7, 1)]], deletes=["7"])
    keyless = build(tmp_path, rows(3), key=None)
    with pytest.raises(DataError, match="no-key"):
        change_data(tmp_path, keyless.manifest, upserts=[[row(7, 1)]])


def test_attributes_are_keys_and_only_named_paths_are_indexed(tmp_path: Path) -> None:
    records = [f"<c s='{place}'><n>n{place}</n><o>{place}</o></c>".encode() for place in range(1_001)]
    files = build_data(tmp_path, [records], key="/c/@s", indexed=["/c/n"])
    all_of = build_data(tmp_path, [records], key="/c/@s")
    assert files.bytes < all_of.bytes
    data = open_data(tmp_path, files.manifest)
    assert (data.key, data.indexed) == ("/c/@s", ["/c/n"])
    index = Index()
    index.attach("c", data)
    index.insert(1, "//m[n = collection('c')/c[@s = '7']/n]")
    index.insert(2, "//m[collection('c')/c/n = n]")
    assert index.match(b"<m><n>n7</n></m>") == [1, 2]
    with pytest.raises(tamis.QueryError, match="scan-limit"):
        index.insert(3, "//m[collection('c')/c/o = n]")
    changed = change_data(tmp_path, files.manifest, upserts=[[b"<c s='7'><n>x</n></c>"]])
    index.attach("c", open_data(tmp_path, changed.manifest))
    assert index.match(b"<m><n>n7</n></m>") == []
    assert index.match(b"<m><n>x</n></m>") == [1, 2]


def test_damage_is_found_on_opening(tmp_path: Path) -> None:
    files = build(tmp_path, rows(100))
    for name, size in files.files:
        path = tmp_path / name
        whole = path.read_bytes()
        for damaged in (whole[: size // 2], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(DataError) as refused:
                open_data(tmp_path, files.manifest)
            assert refused.value.code == "data-damaged"
            path.write_bytes(whole)
    assert stored(tmp_path, files) == rows(100)


def test_a_file_that_is_cut_short_while_it_is_open(tmp_path: Path) -> None:
    files = build(tmp_path, rows(5000))
    index = Index()
    index.attach("r", open_data(tmp_path, files.manifest))
    index.insert(1, "//m[. = collection('r')/row/v]")
    assert index.match(b"<m>3</m>") == [1]
    path = tmp_path / files.files[0][0]
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(tamis.GenerationError, match="data-damaged"):
        index.match(b"<m>3</m>")


def test_data_is_rebuilt_from_its_records(tmp_path: Path) -> None:
    """As from a file of another format, which `src/engine/data_files.rs` tests."""
    base = build(tmp_path, rows(50))
    files = change_data(tmp_path, base.manifest, upserts=[[row(3, "x")]], deletes=["4"])
    anew = rebuild_data(tmp_path, files.manifest)
    assert stored(tmp_path, anew) == stored(tmp_path, files)
    assert (anew.segments, anew.removed) == (1, 0)
    assert stored(tmp_path, change_data(tmp_path, anew.manifest, upserts=[[row(4, "y")]]))[-1] == row(4, "y")
