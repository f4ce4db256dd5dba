"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

HELP = "these tests need Chromium: make programs (or put `chromium` on PATH)"

SECONDS = 120
"""Generous: the machine may be busy. Only a test that fails waits so long."""

DESKTOP, PHONE = (1280, 860), (360, 740)

CHECKS = Path(__file__).parent / "page_checks.js"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that asks for nothing by itself."""
    program = shutil.which("chromium")
    if program is None:
        pytest.fail(HELP)
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A window with the page, and the errors that occur in it."""

    page: Page
    url: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Of the console, and of scripts; but for requests that are refused, which tests ask for."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning") and "Failed to load resource" not in message.text
                else None
            ),
        )

    def log_in(self, secret: str, view: str = "") -> Page:
        """Log in with a token and open a view."""
        self.page.goto(f"{self.url}/#/{view}")
        self.page.get_by_label("Token").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("navigation").wait_for()
        return self.page

    def check(self) -> None:
        """Check the rules that every view must keep (`page_checks.js`)."""
        wrong = self.page.evaluate(CHECKS.read_text("utf-8"))
        assert not wrong, wrong

    def leave(self) -> None:
        """Check that there were no foreign requests, no policy violations and no script errors; close."""
        elsewhere = [url for url in self.requests if not url.startswith(f"{self.url}/")]
        assert not elsewhere, elsewhere
        assert not self.complaints, self.complaints


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    size: tuple[int, int] = DESKTOP,
    colours: Literal["light", "dark"] = "light",
) -> Iterator[Visit]:
    """A new window with empty storage."""
    viewport = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=viewport, color_scheme=colours)  # type: ignore[arg-type]
    try:
        visit = Visit(context.new_page(), url)
        yield visit
        visit.leave()
    finally:
        context.close()
