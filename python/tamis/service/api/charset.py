"""The charset of a Content-Type: the encoding of a message that has no byte order mark or declaration."""

import re
from email.message import Message

from tamis.engine import canonical_label
from tamis.service.errors import ServiceError
from tamis.sources.bytestream import StreamError
from tamis.sources.transcode import UNDECODABLE, UTF8, Transcoder, encoding_of

_DECLARES = re.compile(rb"<\?xml\s[^>]*?\sencoding\s*=")


def in_stated_encoding(body: bytes, content_type: str) -> bytes:
    """The message; converted to UTF-8 if its encoding is stated by the Content-Type only.

    The charset must not contradict a byte order mark or a declaration: one of them would be wrong, and a
    receiver of the delivery has only the message.
    """
    header = Message()
    header["content-type"] = content_type
    charset = header.get_param("charset")
    if charset is None:
        return body
    stated = canonical_label(str(charset))
    if stated is None:
        raise ServiceError("media-type", f"the charset {charset} is not supported: send UTF-8 or UTF-16")
    try:
        found, mark = encoding_of(body)
    except StreamError:
        return body  # the reader refuses it
    if found == stated or (found.startswith("utf-16") and stated == "utf-16"):
        return body
    if body.isascii() and not found.startswith("utf-16") and not stated.startswith("utf-16"):
        return body  # the same characters in both
    if mark or found != UTF8 or _DECLARES.match(body) or stated == "utf-16":
        raise ServiceError("encoding-mismatch", f"the charset is {stated}, but the message is in {found}")
    utf8 = Transcoder(stated).utf8(body, is_last=True)
    if UNDECODABLE in utf8:
        raise ServiceError("bad-encoding", f"the message has bytes that are not in its charset, {stated}")
    return utf8
