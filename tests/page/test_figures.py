"""Views of figures, before a service without a job: the network, and the axes of charts."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tamis.model.token import Role
from tamis.status import LinkReport, StatusBoard
from tests.helpers.browser import visiting
from tests.helpers.served import serving, settings_in


def test_the_network_and_what_is_wrong_with_its_links(browser: Browser, tmp_path: Path) -> None:
    """Without a job: what it would report is put on its board."""
    ends = "".join(f"[[link]]\nends = ['london', '{one}']\npath = '{one}'\n" for one in ("paris", "oslo"))
    names = "".join(f"[[broker]]\nname = '{one}'\n" for one in ("london", "paris", "oslo"))
    (tmp_path / "network.toml").write_text(names + ends)
    settings = settings_in(tmp_path, "[broker]\nname = 'london'\n[[source]]\nname = 'in'\npath = 'in'\n")
    board = StatusBoard(settings.state, ["in"])
    paris = LinkReport(
        *("london.paris", "paris", "up"), routed=True, agreed=True, offered=2000, messages=500,
        bytes=1_250_000, received=40, in_vain=4, routes=12,
        waiting=3, waiting_bytes=1 << 20, most_bytes=1 << 30,
    )  # fmt: skip
    oslo = LinkReport(
        *("london.oslo", "oslo", "unreachable", "link-unreachable", "the directory is gone"), offered=9,
        messages=9, bytes=700, waiting=9, waiting_bytes=1 << 30, most_bytes=1 << 30, pressed=True,
    )  # fmt: skip
    board.links([paris, oslo])
    board.state("running")
    with serving(settings) as served, visiting(browser, served.url) as visit:
        page = visit.log_in(served.secret(Role.ADMIN, ""), "network")
        expect(page.get_by_text("This is london. The other brokers: oslo, paris.")).to_be_visible()
        rows = page.locator("tbody tr")
        texts = ["to paris", "up", "500", "25 %", "1.3 MB", "40", "10 %", "12", "3", "0 % full"]
        expect(rows.first.locator("th, td")).to_have_text(texts)
        expect(rows.last).to_contain_text("is sent everything")
        expect(rows.last).to_contain_text("100 % full")
        expect(page.locator(".problem")).to_have_count(2)
        visit.check()
        board.links([paris])
        board.state("running")
        expect(rows).to_have_count(1)
        expect(page.locator(".problem")).to_have_count(0)


def test_an_axis_shows_each_label_once(browser: Browser, tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as served, visiting(browser, served.url) as visit:
        page = visit.log_in(served.secret(Role.ADMIN, ""))
        for highest, ticks in ((1, ["0", "1"]), (2, ["0", "1", "2"])):
            shown = page.evaluate(
                """async (highest) => {
                    const { chart } = await import("/page/js/chart.js");
                    const format = (one) => one.toFixed(0);
                    const drawn = chart({ label: "", seconds: 60, format, series: [{ name: "n" }] });
                    drawn.show([{ time: 0, n: highest }]);
                    return [...drawn.node.querySelectorAll(".tick[x='40']")].map((tick) => tick.textContent);
                }""",
                highest,
            )
            assert shown == ticks
