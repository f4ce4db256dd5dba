"""Which addresses and URLs webhooks may have; what names resolve to is in `test_webhooks.py`."""

import pytest

from tamis.errors import SinkError
from tamis.sinks.addresses import Addresses
from tamis.sinks.webhook import validate_url

INTERNET = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::200e"]

ELSEWHERE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "169.254.169.254", "169.254.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "100::1",
    # With an IPv4 address inside: mapped, compatible, NAT64, 6to4, Teredo.
    "::ffff:127.0.0.1", "::ffff:1.1.1.1", "::127.0.0.1", "::1.1.1.1", "64:ff9b::7f00:1", "64:ff9b::101:101",
    "64:ff9b:1::1", "2002:7f00:1::", "2001:0:102:304::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INTERNET)
def test_the_internet_is_allowed(address: str) -> None:
    assert Addresses().is_allowed(address)
    # But not unencrypted.
    assert not Addresses().is_listed(address)


@pytest.mark.parametrize("address", ELSEWHERE)
def test_all_else_is_not_unless_the_settings_name_it(address: str) -> None:
    assert not Addresses().is_allowed(address)
    assert not Addresses(["9.9.9.9/32", "2620:fe::/48"]).is_allowed(address)
    own = address.partition("%")[0]
    assert Addresses([own]).is_allowed(address)
    assert Addresses([own]).is_listed(address)


def test_a_network_is_a_network() -> None:
    for wrong in ("localhost", "127.0.0.1/8", "10.0.0.0/33", ""):
        with pytest.raises(ValueError, match=r"does not appear|has host bits"):
            Addresses([wrong])


GOOD = [
    "https://example.org/hook?x=1",
    "https://example.org:8443",
    "https://[2606:4700::1111]/",
    "https://1.1.1.1/",
]

BAD = [
    "", "example.org", "//example.org/", "ftp://example.org/", "file:///etc/passwd", "https://", "https:///x",
    "gopher://example.org/", "https://ann:secret@example.org/", "https://ann@example.org/",
    "https://example.org/#x", "https://example.org:0/", "https://example.org:99999/", "https://example.org:x/",
    "https://exa mple.org/", "https://a%2eb/", "https://a..b%00/", "https://example.org/\n",
    "https://127.0.0.1/", "https://[::1]/",
    "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest/meta-data", "https://0.0.0.0/",
    "https://example.org/" + "x" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_urls_of_the_internet(url: str) -> None:
    assert validate_url(url, Addresses()).startswith(url)
    with pytest.raises(SinkError, match="https"):
        validate_url(url.replace("https", "http"), Addresses())


@pytest.mark.parametrize("url", BAD)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(SinkError) as caught:
        validate_url(url, Addresses())
    assert caught.value.code == "bad-url"


def test_unencrypted_only_to_what_the_settings_name() -> None:
    addresses = Addresses(["10.0.0.0/8"])
    assert validate_url("http://10.1.2.3:8080/x", addresses) == "http://10.1.2.3:8080/x"
    assert validate_url("http://inside.example/", addresses) == "http://inside.example/"
    with pytest.raises(SinkError, match="bad-url"):
        validate_url("http://1.1.1.1/", addresses)
