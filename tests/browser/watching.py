"""What a page did that it should not have: asked, went, fetched, or grew into."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.async_api import Dialog, Frame, Page, Request

LOOK = """() => {
  const wrong = [];
  const own = new Set(["/js/early.js", "/js/main.js"]);
  for (const element of document.querySelectorAll("*")) {
    const name = element.localName;
    if (["iframe", "object", "embed", "base", "frame", "meta", "link", "style"].includes(name)
        && element.closest("body")) wrong.push(name);
    if (name === "script" && !own.has(new URL(element.src || "x:", location).pathname)) wrong.push("script");
    for (const { name: attribute, value } of element.attributes) {
      if (attribute.startsWith("on")) wrong.push(`${name} ${attribute}`);
      if (attribute === "style" && /url\\(|expression/i.test(value)) wrong.push(`${name} style=${value}`);
      if (attribute === "srcdoc") wrong.push(`${name} srcdoc`);
    }
    if (name === "a" && element.hasAttribute("href") && !element.getAttribute("href").startsWith("#")
        && !["http:", "https:", "mailto:", "blob:"].includes(element.protocol)) wrong.push(element.href);
    if (name === "a" && element.target === "_blank" && !/noopener/.test(element.rel)) wrong.push("opener");
    const source = element.src ?? element.href?.baseVal ?? "";
    if (["img", "audio", "video", "source", "image", "use"].includes(name) && source
        && !/^(data:(image|audio)|blob:|#)/.test(source)) wrong.push(`${name} ${source}`);
  }
  return [...new Set(wrong)].slice(0, 20);
}"""


class Watched:
    """A page from now on."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._host = urlsplit(page.url).netloc
        self._done: list[str] = []
        page.on("dialog", self._asked)
        page.on("popup", lambda opened: self._done.append(f"opened {opened.url}"))
        page.on("framenavigated", self._went)
        page.on("download", lambda download: self._done.append(f"downloaded {download.url}"))
        page.context.on("request", self._fetched)

    async def _asked(self, dialog: Dialog) -> None:
        self._done.append(f"asked {dialog.message}")
        await dialog.dismiss()

    def _went(self, frame: Frame) -> None:
        if frame != self.page.main_frame or urlsplit(frame.url).netloc != self._host:
            self._done.append(f"went to {frame.url}")

    def _fetched(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self._host:
            self._done.append(f"fetched {request.url}")

    async def wrongs(self) -> list[str]:
        """What it did, and what is in it that could do something."""
        found: list[str] = await self.page.evaluate(LOOK)
        return self._done + found
