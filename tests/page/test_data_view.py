"""The view of local data, and the playground that joins with it, before a service without a job."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tamis.client import Client
from tamis.model.token import Role
from tests.helpers.browser import visiting
from tests.helpers.served import serving, settings_in


def test_data_is_uploaded_and_joined_with(browser: Browser, tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as served, visiting(browser, served.url) as visit:
        page = visit.log_in(served.secret(Role.ADMIN), "data")
        menu = page.get_by_role("navigation").get_by_role("link")
        table = tmp_path / "firms.csv"
        table.write_text("symbol,name\nQLT,Qualité\nBOL,Bolt\n")
        page.locator(".toolbar").get_by_role("button", name="Upload data").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Name").fill("firms")
        form.get_by_label("Record key").fill("/row/symbol")
        form.get_by_role("button", name="Upload").click()
        expect(form.get_by_text("choose a file")).to_be_visible()
        form.get_by_label("File").set_input_files(table)
        visit.check()
        form.get_by_role("button", name="Upload").click()
        expect(form).to_have_count(0)
        card = page.locator("[data-id=firms]")
        expect(card).to_contain_text("2 records")
        card.locator("summary").click()
        expect(card).to_contain_text("<row><symbol>QLT</symbol><name>Qualité</name></row>")

        # The old version stays.
        table.write_text("symbol,name\nQLT,a\nQLT,b\n")
        card.get_by_role("button", name="Upload firms").click()
        form.get_by_label("File").set_input_files(table)
        form.get_by_role("button", name="Upload").click()
        expect(form).to_contain_text("records 1 and 2 have the key")
        form.get_by_role("button", name="Cancel").click()
        with Client(served.url, served.secret(Role.ADMIN)) as admin:
            admin.put_data("firms", b"symbol,name\nQLT,Other\n", media_type="text/csv")
        page.reload()
        expect(card).to_contain_text("1 record,")
        card.locator("summary").click()
        card.get_by_role("button", name="Go back to version 1 of firms").click()
        expect(card).to_contain_text("2 records")
        visit.check()

        menu.get_by_text("Playground").click()
        page.get_by_role("textbox", name="Message", exact=True).fill("<t symbol='QLT'/>")
        look_up = "for $t in //t return <d>{ collection('firms')/row[symbol = $t/@symbol]/name }</d>"
        page.get_by_role("textbox", name="Query").fill(look_up)
        expect(page.locator(".result .code")).to_contain_text("<name>Qualité</name>")

        menu.get_by_text("Data", exact=True).click()
        card.locator("summary").click()
        card.get_by_role("button", name="Remove firms").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(card).to_have_count(0)
