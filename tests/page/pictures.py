"""Takes the pictures of the page in docs/service.md: `python -m tests.page.pictures`."""

import io
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tamis.catalog import Catalog
from tamis.client import Client
from tamis.model.token import NewToken, Role
from tests.helpers import ROOT
from tests.helpers.browser import chromium, visiting
from tests.helpers.jobs import Folder
from tests.helpers.servers import free_port
from tests.helpers.waiting import until
from tests.service.test_serve import MORE
from tests.service.test_serve import serving as service_in

TO = ROOT / "docs" / "img"

SIZE, PHONE = (1280, 860), (390, 844)

SUBSCRIPTIONS = [
    ("ann", "qlt-up", "//company[@symbol = 'QLT'][change > 0]/price"),
    (
        "ann",
        "jumps",
        "for $c in //company where $c/change > 5\n"
        'return <jump symbol="{ $c/@symbol }">{ $c/price/text() }</jump>',
    ),
    ("harbour office", "harbour", "/story[topic/@code = 'transport']"),
    ("breaking news desk", "breaking", "//*[@urgency <= 2]"),
    ("analyst", "no-losses", "/story[topic/@code = 'markets' and not(company/change < 0)]"),
    ("night editor", "storms", "/story[contains(headline, 'Storm') or starts-with(body/p, 'Winds')]"),
]

BROKEN = [
    "<story id='7'>\n  <headline>Cut off – in the middle</headline>\n  <body>\n    <p>The last words were",
    "<story>\n  <company symbol='QLT' symbol='BOL'/>\n</story>",
]


def story(number: int, chance: random.Random) -> str:
    topic, symbol = chance.choice(["markets", "transport", "sport"]), chance.choice(["QLT", "BOL", "ZED"])
    return (
        f"<story id='{number}' urgency='{chance.randint(1, 6)}'><headline>Qualité SA: the news</headline>"
        f"<topic code='{topic}'/><company symbol='{symbol}'><name>Qualité SA</name>"
        f"<price currency='EUR'>{chance.uniform(10, 90):.2f}</price>"
        f"<change>{chance.uniform(-5, 12):.1f}</change></company></story>"
    )


@contextmanager
def feeding(admin: Client) -> Iterator[None]:
    """Messages, some of them broken, until it is enough."""
    chance, enough = random.Random(5), threading.Event()

    def feed() -> None:
        for turn in count():
            many = [(f"story-{turn}-{n}", story(1000 + n, chance)) for n in range(chance.randint(5, 30))]
            if turn in (3, 9, 14):
                many.append((f"broken-{turn}", BROKEN[turn % 2]))
            admin.publish_many(many)
            if enough.wait(0.5):
                return

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def take(page: Page, name: str) -> None:
    """A picture."""
    path = TO / f"page-{name}.png"
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    # A palette of 256 colours: a third of the bytes.
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(path.name, path.stat().st_size)


def desktop(browser: Browser, url: str, secret: str) -> None:
    with visiting(browser, url, SIZE) as visit:
        page = visit.log_in(secret, "now")
        until(lambda: page.evaluate("performance.now()") > 75_000, "charts with something on them")
        take(page, "now")
        menu = page.get_by_role("navigation")
        menu.get_by_text("Subscriptions").click()
        expect(page.locator(".subscription")).to_have_count(len(SUBSCRIPTIONS))
        take(page, "subscriptions")
        page.keyboard.press("n")
        form = page.get_by_role("dialog")
        form.get_by_label("Query").fill("/story[topic/@code = 'météo' AND @urgency = 1]")
        form.get_by_label("Subscriber").fill("ann")
        expect(form.locator(".pointer")).to_be_visible()
        take(page, "new-subscription")
        page.keyboard.press("Escape")
        menu.get_by_text("Playground").click()
        page.get_by_label("Sample queries").select_option(index=2)
        expect(page.locator(".result .code")).to_be_visible()
        expect(page.locator(".others details").first).to_be_attached()
        take(page, "playground")
        menu.get_by_text("Publish").click()
        page.get_by_role("button", name="Publish").click()
        expect(page.locator(".published li")).to_have_count(1)
        take(page, "publish")
        menu.get_by_text("Dead letters").click()
        page.locator(".letter", has_text="unclosed").first.locator("> summary").click()
        expect(page.locator(".letter .code").first).to_be_visible()
        take(page, "dead-letters")


def elsewhere(browser: Browser, url: str, secret: str, ann: str) -> None:
    with visiting(browser, url, SIZE, "dark") as visit:
        page = visit.log_in(ann, "deliveries")
        page.locator(".delivery", has_text="qlt-up").first.locator("> summary").click()
        expect(page.locator(".delivery .code")).to_be_visible()
        page.locator("h1").hover()
        page.evaluate("scrollTo(0, 0)")
        take(page, "deliveries-dark")
    with visiting(browser, url, PHONE) as visit:
        page = visit.log_in(secret, "now")
        until(lambda: page.evaluate("performance.now()") > 30_000, "charts with something on them")
        take(page, "now-phone")
    with visiting(browser, url, PHONE, "dark") as visit:
        page = visit.log_in(secret, "playground")
        expect(page.locator(".verdict.yes")).to_be_visible()
        page.get_by_role("textbox", name="Query").scroll_into_view_if_needed()
        page.evaluate("scrollTo(0, document.querySelector('.bench section:last-child').offsetTop - 70)")
        take(page, "playground-phone")


def main() -> None:
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        folder, port = Folder(Path(path), MORE), free_port()
        catalog = stack.enter_context(Catalog(folder.catalog))
        tokens = [NewToken("desk", Role.ADMIN), NewToken("ann", Role.SUBSCRIBER, subscriber="ann")]
        secret, ann = (catalog.tokens.create(token)[1] for token in tokens)
        stack.enter_context(service_in(folder, port))
        url = f"http://127.0.0.1:{port}"
        admin = stack.enter_context(Client(url, secret))
        for subscriber, id, query in SUBSCRIPTIONS:
            admin.subscribe(query, subscriber=subscriber, id=id)
        admin.publish("<first/>")
        until(lambda: folder.status() is not None, "the job")
        until(lambda: folder.read(), "the first batch")
        browser = stack.enter_context(chromium())
        with feeding(admin):
            desktop(browser, url, secret)
            elsewhere(browser, url, secret, ann)


if __name__ == "__main__":
    main()
