"""`tamis match`: print which queries of a file match each document."""

import argparse

from tamis.cli.inputs import add_input_arguments, read_documents, read_index
from tamis.cli.progress import bar


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Queries and documents."""
    add_input_arguments(command)
    command.set_defaults(run=match)


def match(options: argparse.Namespace) -> int:
    """`tamis match --queries FILE DOC…`."""
    index, refused = read_index(options)
    unreadable = False
    with bar("matching") as report:
        for done, paths, contents, failures in read_documents(options.documents):
            matches = index.match_batch(contents)
            targets, errors = index.targets(matches), matches.select(["code", "reason"]).to_pylist()
            for at, (path, row) in enumerate(zip(paths, errors, strict=True)):
                if at in failures:
                    unreadable = True
                    print(f"{path}\tERROR no-file: {failures[at].strerror}")
                elif row["code"] is not None:
                    print(f"{path}\tERROR {row['code']}: {row['reason']}")
                else:
                    print(f"{path}\t{' '.join(map(str, targets[at].as_py()))}")
            report(done, len(options.documents))
    if refused and options.strict:
        return 2
    return 1 if unreadable else 0
