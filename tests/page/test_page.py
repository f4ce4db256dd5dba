"""The page in a real browser, before a real service with its job."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tamis.catalog import Catalog
from tamis.client import Client
from tamis.model.token import NewToken, Role
from tests.helpers.browser import PHONE, Visit, visiting
from tests.helpers.delivery_rows import delivery
from tests.helpers.jobs import Folder
from tests.helpers.served import serving, settings_in
from tests.helpers.servers import free_port
from tests.helpers.waiting import until
from tests.service.test_serve import MORE
from tests.service.test_serve import serving as service_in
from tests.service.test_service_deliveries import publish as deliver

VIEWS = {
    Role.ADMIN: ["Now", "Subscriptions", "Playground", "Publish", "Deliveries", "Dead letters", "Network"],
    Role.PUBLISHER: ["Now", "Publish"],
    Role.SUBSCRIBER: ["Now", "Subscriptions", "Playground", "Deliveries"],
}
NAMES = ["now", "subscriptions", "playground", "publish", "deliveries", "letters", "network"]

STORY = "<story><company symbol='QLT'><name>Qualité 𝄞</name><price>13.90</price></company></story>"


@dataclass
class Place:
    """A service, and a browser to look at it."""

    url: str
    browser: Browser
    catalog: Catalog
    secrets: dict[Role, str]

    def client(self, role: Role = Role.ADMIN) -> Client:
        return Client(self.url, self.secrets[role])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Place]:
    folder = Folder(tmp_path_factory.mktemp("page"), MORE)
    port = free_port()
    with ExitStack() as stack:
        catalog = stack.enter_context(Catalog(folder.catalog))
        secrets = {
            role: catalog.tokens.create(
                NewToken(f"a {role}", role, subscriber="ann" if role is Role.SUBSCRIBER else None)
            )[1]
            for role in Role
        }
        stack.enter_context(service_in(folder, port))
        place = Place(f"http://127.0.0.1:{port}", browser, catalog, secrets)
        with place.client() as admin:
            admin.publish("<first/>")
            # Spark takes its time to start, and for its first batch.
            until(lambda: folder.status() is not None, "the job")
            until(lambda: folder.read(), "the first batch")
        yield place


@pytest.fixture
def visit(place: Place) -> Iterator[Visit]:
    with visiting(place.browser, place.url) as visit:
        yield visit


def menu(page: Page) -> Locator:
    return page.get_by_role("navigation").get_by_role("link")


def test_a_subscription_with_an_error_that_is_mended(place: Place, visit: Visit) -> None:
    page = visit.log_in(place.secrets[Role.ADMIN], "subscriptions")
    page.locator(".toolbar").get_by_role("button", name="New subscription").click()
    form = page.get_by_role("dialog")
    # Counted in characters, though the service counts bytes.
    form.get_by_label("Query").fill("//company[name = 'é𝄞' AND price > 10]")
    expect(form.get_by_text("1:23")).to_be_visible()
    expect(form.locator(".pointer")).to_have_text(re.compile(r"\n {22}\^$"))
    expect(form.locator(".editor .wrong")).to_have_text("A")
    expect(form.get_by_label("Query")).to_have_attribute("aria-invalid", "true")
    visit.check()
    # The service refuses the query with the same reason.
    form.get_by_label("Subscriber").fill("ann")
    form.get_by_role("button", name="Subscribe").click()
    expect(form.get_by_text("in lower case")).to_be_visible()
    form.get_by_label("Query").fill("//company[name = 'é𝄞' and price > 10]")
    expect(form.get_by_text("Valid:")).to_be_visible()
    form.get_by_label("Id", exact=True).fill("mended")
    form.get_by_role("button", name="Subscribe").click()
    expect(form).to_have_count(0)
    card = page.locator("[data-id=mended]")
    expect(card).to_contain_text("//company[name = 'é𝄞' and price > 10]")

    card.get_by_role("button", name="Pause").click()
    expect(card.locator(".badge")).to_have_text("paused")
    page.get_by_label("State").select_option("active")
    expect(card).to_have_count(0)
    page.get_by_label("State").select_option("")
    card.get_by_role("button", name="Resume").click()
    expect(card.locator(".badge")).to_have_text("active")
    card.get_by_role("button", name="Edit").click()
    form.get_by_label("Query").fill("//company")
    form.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("revision 2")
    page.get_by_label("Search").fill("no such text")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.get_by_label("Search").fill("//comp")
    expect(card).to_be_visible()
    card.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    card.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("mended is removed")).to_be_visible()
    expect(card).to_have_count(0)


def test_subscriptions_by_the_page(place: Place, visit: Visit) -> None:
    with place.client() as admin:
        admin.subscribe("/first", subscriber="bob", id="a-first")
        for number in range(25):
            admin.subscribe(f"/paged[{number} = n]", subscriber="pages", id=f"paged-{number:02}")
    page = visit.log_in(place.secrets[Role.ADMIN], "subscriptions")
    expect(page.locator("[data-id=a-first]")).to_be_visible()
    page.get_by_label("Subscriber").fill("pages")
    expect(page.locator("[data-id=a-first]")).to_have_count(0)
    expect(page.locator(".subscription")).to_have_count(20)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".subscription")).to_have_count(5)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(page.locator("[data-id=paged-00]")).to_be_visible()


def test_the_playground(place: Place, visit: Visit) -> None:
    with place.client() as admin:
        admin.subscribe("//company[@symbol = 'NONE']", subscriber="bob", id="none")
    page = visit.log_in(place.secrets[Role.ADMIN], "playground")
    verdict = page.locator(".verdict")
    query = page.get_by_role("textbox", name="Query")
    message = page.get_by_role("textbox", name="Message", exact=True)
    message.fill(STORY)
    query.fill("//price")
    expect(verdict).to_contain_text("Matches")
    # Behind letters of two and four bytes.
    expect(page.locator(".editor .hit-0")).to_have_text(["<", "price", ">", "13.90", "</", "price", ">"])
    # At each keystroke.
    query.press("End")
    query.press_sequentially("[. > 20]")
    expect(verdict).to_contain_text("Does not match")
    expect(page.locator(".explanation .fails")).to_contain_text(">20")
    query.fill("//price[")
    expect(verdict).to_contain_text("Invalid query")
    expect(page.locator(".checked .located")).to_contain_text("1:9")
    query.fill("for $c in //company return <q>{ $c/name/text() }</q>")
    expect(page.locator(".result .code")).to_have_text("<q>Qualité 𝄞</q>")
    # The explanation for a subscription that does not match.
    other = page.locator(".others [data-id=none]")
    other.locator("summary").click()
    expect(other.locator(".paths .fails")).to_contain_text("='NONE'")
    # The error of a message that is not well-formed is shown at its position.
    message.fill("<a>é</b>")
    expect(verdict).to_contain_text("Not well-formed")
    expect(page.locator(".message .wrong")).to_have_text("<")
    visit.check()
    page.get_by_label("Sample", exact=True).select_option("1")
    expect(verdict).to_contain_text("Matches")
    expect(page.get_by_label("Prefixes")).to_have_value("geo = urn:example:geo")
    page.get_by_role("button", name="Subscribe", exact=True).click()
    form = page.get_by_role("dialog")
    expect(form.get_by_label("Query")).to_have_value("//geo:place[@population > 500000]")
    form.get_by_label("Subscriber").fill("bob")
    form.get_by_label("Query").press("Control+Enter")
    expect(page.get_by_role("heading", name="Subscriptions")).to_be_visible()
    expect(page.locator(".subscription")).to_contain_text("//geo:place")


def test_the_playground_mends_namespaces(place: Place, visit: Visit) -> None:
    page = visit.log_in(place.secrets[Role.ADMIN], "playground")
    verdict = page.locator(".verdict")
    query = page.get_by_role("textbox", name="Query")
    page.get_by_role("textbox", name="Message", exact=True).fill(
        "<Invoice xmlns='urn:i' xmlns:c='urn:c'><c:ID>7</c:ID></Invoice>"
    )
    query.fill("//Invoice")
    expect(verdict).to_contain_text("only the namespace differs")
    page.get_by_role("button", name="Use the query that matches").click()
    expect(verdict).to_contain_text("Matches")
    expect(query).to_have_value("//Q{urn:i}Invoice")
    query.fill("//c:ID")
    expect(verdict).to_contain_text("Invalid query")
    page.get_by_role("button", name="Bind c = urn:c").click()
    expect(verdict).to_contain_text("Matches")


def test_the_playground_has_headers_and_completes_words(place: Place, visit: Visit) -> None:
    page = visit.log_in(place.secrets[Role.ADMIN], "playground")
    verdict = page.locator(".verdict")
    query = page.get_by_role("textbox", name="Query")
    page.get_by_role("textbox", name="Message", exact=True).fill(STORY)
    query.fill("$envelope/header[@name = 'priority'] = 'high'")
    expect(verdict).to_contain_text("Does not match")
    page.get_by_text("Headers", exact=True).click()
    headers = page.get_by_label("Headers of the message")
    headers.fill("region = eu\npriority = high")
    expect(verdict).to_contain_text("Matches")
    visit.check()
    # Names of the message and functions, while a word is typed.
    query.fill("")
    options = page.get_by_role("option")
    query.press_sequentially("//co")
    expect(options).to_have_text(
        ["companyelement", "collection(function", "concat(function", "contains(function", "count(function"]
    )
    visit.check()
    query.press("ArrowDown")
    query.press("Enter")
    expect(query).to_have_value("//company")
    query.press_sequentially("[@s")
    expect(options).to_have_text(["@symbolattribute"])
    options.click()
    expect(query).to_have_value("//company[@symbol")
    query.press_sequentially(" = 'co")
    expect(options).to_have_count(0)
    query.press_sequentially("'][na")
    query.press("Escape")
    expect(options).to_have_count(0)
    query.press_sequentially("m")
    expect(options).to_have_text(["nameelement", "name(function", "namespace-uri(function"])
    # The publish view has the same message and headers.
    page.get_by_role("link", name="Publish").click()
    expect(page.get_by_label("Headers of the message")).to_have_value("region = eu\npriority = high")
    page.get_by_label("Message id").fill("with-headers")
    with page.expect_request("**/v1/messages*") as request:
        page.get_by_role("button", name="Publish").click()
    assert request.value.post_data_json == {
        "id": "with-headers", "xml": STORY, "headers": {"region": "eu", "priority": "high"},
    }  # fmt: skip
    expect(page.get_by_role("listitem").filter(has_text="with-headers")).to_contain_text("accepted")
    visit.check()


def test_from_publishing_to_the_delivery(place: Place, visit: Visit) -> None:
    with place.client(Role.SUBSCRIBER) as ann:
        ann.subscribe("for $c in //company return <q>{ $c/name/text() }</q>", id="names")
    page = visit.log_in(place.secrets[Role.PUBLISHER], "publish")

    def publish(id: str) -> None:
        page.get_by_role("textbox", name="Message", exact=True).fill(STORY)
        page.get_by_label("Message id").fill(id)
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_role("listitem").filter(has_text=id)).to_contain_text("accepted")

    with visiting(place.browser, place.url) as other:
        theirs = other.log_in(place.secrets[Role.SUBSCRIBER], "deliveries")
        expect(theirs.get_by_text("Live:")).to_be_visible()
        publish("p1")
        first = theirs.locator(".delivery", has_text="p1")
        expect(first).to_have_count(1)
        first.locator("summary").click()
        expect(first.locator(".code")).to_have_text("<q>Qualité 𝄞</q>")
        other.check()
        # The same id is the same message.
        page.get_by_label("Message id").fill("p1")
        page.get_by_role("button", name="Publish").click()
        expect(page.get_by_text("already known")).to_be_visible()
        # A delivery that is being read does not move.
        publish("p2")
        second = theirs.locator(".delivery", has_text="p2")
        expect(theirs.get_by_role("button", name="Show 1 new one")).to_be_visible()
        expect(second).to_have_count(0)
        first.get_by_role("button", name="Acknowledge").click()
        expect(first).to_have_count(0)
        expect(second).to_have_count(1)
        theirs.reload()
        expect(second).to_have_count(1)
        expect(first).to_have_count(0)
        theirs.get_by_role("button", name="Acknowledge all").click()
        expect(theirs.get_by_text("No deliveries")).to_be_visible()
        # The batches of the job are shown.
        theirs.get_by_role("link", name="Now").click()
        expect(theirs.locator(".tile").first).not_to_contain_text("0 in total")
        expect(theirs.get_by_role("row").filter(has_text="inbox")).to_be_visible()
    with place.client(Role.SUBSCRIBER) as ann:
        assert ann.deliveries() == []


def test_deliveries_go_on_after_a_break(browser: Browser, tmp_path: Path) -> None:
    """Without a job: what it would deliver is put into the outbox."""
    settings = settings_in(tmp_path)
    with ExitStack() as stack:
        with serving(settings) as served:
            visit = stack.enter_context(visiting(browser, served.url))
            asked: list[str | None] = []
            visit.page.on(
                "request",
                lambda request: (
                    asked.append(request.headers.get("last-event-id"))
                    if request.url.endswith("/v1/deliveries/events")
                    else None
                ),
            )
            page = visit.log_in(served.secret(Role.SUBSCRIBER, "", "ann"), "deliveries")
            deliver(tmp_path, 0, [delivery(1, "ann")])
            expect(page.locator(".delivery")).to_have_count(1)
        expect(page.get_by_text("The connection broke")).to_be_visible()
        with serving(settings):
            deliver(tmp_path, 1, [delivery(2, "ann")])
            expect(page.locator(".delivery")).to_have_count(2)
            expect(page.get_by_text("Live:")).to_be_visible()
        assert asked[0] is None
        assert asked[-1] == "1"


def test_a_dead_letter_is_replayed_and_mended(place: Place, visit: Visit) -> None:
    page = visit.log_in(place.secrets[Role.ADMIN], "publish")
    page.get_by_role("textbox", name="Message", exact=True).fill("<story>é<company></story>")
    page.get_by_label("Message id").fill("broken")
    page.get_by_role("button", name="Publish").click()
    page.get_by_role("link", name="Dead letters").click()
    letters = page.locator(".letter", has_text="broken")
    # The letter is listed, and later the one that the replay causes.
    expect(letters).to_have_count(1)
    letters.locator("> summary").click()
    expect(letters.locator(".code").first).to_contain_text("<story>é<company></story>")
    expect(letters.locator(".code .wrong").first).to_have_text("<")
    expect(letters.locator(".facts")).to_contain_text("line 1, column 18")
    letters.get_by_text("Bytes").click()
    expect(letters.locator(".hex .wrong").first).to_have_text("3c")
    visit.check()
    letters.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("1 message replayed")).to_be_visible()
    expect(letters).to_have_count(2)
    expect(letters.filter(has_text="replayed")).to_have_count(1)
    page.locator(".letter").first.locator("> summary").click()
    page.get_by_role("button", name="Correct and publish").first.click()
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_value("<story>é<company></story>")


@pytest.mark.parametrize("role", Role)
def test_a_role_is_offered_what_it_may_do_and_refused_the_rest(
    place: Place, visit: Visit, role: Role
) -> None:
    page = visit.log_in(place.secrets[role])
    expect(menu(page)).to_have_text(VIEWS[role])
    for name, title in zip(NAMES, VIEWS[Role.ADMIN], strict=True):
        page.goto(f"{place.url}/#/{name}")
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        refusal = page.get_by_role("alert").filter(has_text="Not allowed")
        if title in VIEWS[role]:
            expect(page.locator(".problem")).to_have_count(0)
        else:
            expect(refusal).to_contain_text("this needs a token with the role")


def test_login_with_valid_and_invalid_tokens(place: Place, visit: Visit) -> None:
    page = visit.page
    page.goto(place.url)
    expect(page.get_by_label("Token")).to_be_focused()
    visit.check()
    page.get_by_label("Token").fill("tamis_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("this is no token, or it was revoked")
    token, secret = place.catalog.tokens.create(NewToken("soon revoked", Role.ADMIN))
    visit.log_in(secret, "subscriptions")
    # Kept while the tab is open, and nowhere else.
    assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
    page.reload()
    expect(page.get_by_text("soon revoked")).to_be_visible()
    place.catalog.tokens.revoke(token.id)
    expect(page.get_by_role("alert")).to_contain_text("revoked")
    visit.log_in(place.secrets[Role.PUBLISHER])
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_with_the_keyboard_only(place: Place, visit: Visit) -> None:
    page = visit.page
    page.goto(place.url)
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(place.secrets[Role.ADMIN])
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.reload()
    page.get_by_role("navigation").wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Playground")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="Subscriptions")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog").get_by_label("Query")).to_be_focused()
    page.keyboard.type("//by[hand]")
    page.keyboard.press("Tab")
    page.keyboard.type("keys")
    page.keyboard.press("Tab")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Subscribed: typed")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("//by")
    expect(page.locator(".subscription")).to_have_count(1)
    # From the search to the button that removes it; each one on the way is seen to have the focus.
    remove = page.get_by_role("button", name="Remove typed")
    for _ in range(20):
        page.keyboard.press("Tab")
        focused = "getComputedStyle(document.activeElement.closest('.editor') ?? document.activeElement)"
        assert page.evaluate(f"{focused}.outlineStyle") != "none"
        if remove.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Remove")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing found")).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_view_in_every_form(place: Place, phone: bool, colours: str) -> None:
    """Nothing is too wide, too pale, too small to be hit or without a name."""
    size = {"size": PHONE} if phone else {}
    with visiting(place.browser, place.url, colours=colours, **size) as visit:  # type: ignore[arg-type]
        page = visit.log_in(place.secrets[Role.ADMIN])
        for name, title in zip(NAMES, VIEWS[Role.ADMIN], strict=True):
            menu(page).filter(has_text=title).click()
            expect(menu(page).filter(has_text=title)).to_have_attribute("aria-current", "page")
            expect(page.get_by_role("heading", level=1)).to_have_text(title)
            expect(page.locator("[aria-busy=true]")).to_have_count(0)
            if name == "playground":
                expect(page.locator(".verdict.yes")).to_be_visible()
            visit.check()


def test_a_lost_service_is_reported(place: Place, visit: Visit) -> None:
    page = visit.log_in(place.secrets[Role.ADMIN])
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("the service does not answer")
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
