"""What a terminal shows is copied as commands only, by the button and by hand, on every page."""

import re
from pathlib import Path

import pytest
from wallaroo_docs.pages import commands, pages
from webdriver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

BLOCKS = ".language-console.highlight"
# The button's script puts a text into a field, selects it, and gives the command "copy".
HEAR = """const command = document.execCommand.bind(document);
document.execCommand = name => {
  window.copied = document.activeElement.value;
  return command(name);
}"""
PRESS = f"""const block = document.querySelectorAll("{BLOCKS}")[NUMBER];
block.scrollIntoView();
const button = block.querySelector("button");
if (button === null || getComputedStyle(button.parentElement).display === "none") return null;
window.copied = null;
button.click();
return window.copied"""
SELECT = f"""const selection = document.getSelection();
selection.selectAllChildren(document.querySelectorAll("{BLOCKS} code")[NUMBER]);
return selection.toString()"""


def shown(path: Path) -> list[str]:
    """Return the commands of each terminal on a page, as a shell would take them."""
    blocks = re.findall(r"^```console[^\n]*\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)
    return ["\n".join(one for one, _ in commands(block) if one != "^C") for block in blocks]


PAGES = [path for path in pages() if shown(path)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_terminal_is_copied_as_its_commands(path: Path, address: str, browser: Browser) -> None:
    browser.open(f"{address}/{path.stem}.html")
    browser.script(HEAR)
    for number, expected in enumerate(shown(path)):
        press, select = PRESS.replace("NUMBER", str(number)), SELECT.replace("NUMBER", str(number))
        if expected:
            copied: list[str | None] = []

            def pressed(press: str = press, copied: list[str | None] = copied) -> bool:
                copied[:] = [browser.script(press)]
                return copied != [None]

            browser.wait(pressed, f"terminal {number} of {path.stem} has no button")
            assert copied == [expected]
        else:  # it shows only what comes when a key is pressed
            assert browser.script(press) is None
        selected = [line for line in browser.script(select).splitlines() if line]
        assert selected == expected.splitlines()
