// What can be wrong with a page for somebody who sees little, hears it read, or has only a keyboard.
// An expression whose value has one function for each check; each gives a list of complaints.
(() => {
  const SPOKEN = "button, a[href], input, select, textarea, summary, [role=button], [role=tab], [role=link],"
    + " [role=checkbox], [role=switch], [role=option], [role=menuitem], [tabindex]";
  const LARGE = 24;
  const LARGE_BOLD = 18.66;
  const TARGET = 24;

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  /** How a complaint names an element. */
  function named(element) {
    const id = element.id ? `#${element.id}` : "";
    const classes = [...element.classList].map((name) => `.${name}`).join("");
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName}${id}${classes}>${text ? ` "${text}"` : ""}`;
  }

  function visible(element) {
    return element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })
      && element.getClientRects().length > 0;
  }

  /** Shown to nobody but a screen reader, by one of the usual ways. */
  function onlySpoken(element) {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      const box = at.getBoundingClientRect();
      if (style.clipPath === "inset(50%)" || style.clip === "rect(0px, 0px, 0px, 0px)") return true;
      if (style.overflow === "hidden" && box.width <= 1 && box.height <= 1) return true;
      if (style.position === "absolute" && box.right <= 0) return true;
    }
    return false;
  }

  function tabbable(element) {
    return element.tabIndex >= 0 && !element.matches(":disabled") && !element.closest("[inert]")
      && visible(element);
  }

  // --- colours -----------------------------------------------------------------------------------

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();

  /** A colour in whatever notation, as [red, green, blue, alpha], each of the first three 0 to 255. */
  function colour(text) {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [red, green, blue, alpha / 255]);
    }
    return known.get(text);
  }

  const over = (above, below, opacity = 1) =>
    [0, 1, 2].map((at) => above[at] * above[3] * opacity + below[at] * (1 - above[3] * opacity)).concat(1);

  /** What lies behind the text of an element; null where a picture does. */
  function behind(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      layers.push(colour(style.backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    const paper = colour(getComputedStyle(document.documentElement).colorScheme.includes("dark") ? "#121212" : "#fff");
    return layers.reverse().reduce((below, layer) => over(layer, below), paper);
  }

  function luminance(rgb) {
    const [red, green, blue] = rgb.slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function ratio(one, other) {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }

  function opacity(element) {
    let whole = 1;
    for (let at = element; at; at = at.parentElement) whole *= Number(getComputedStyle(at).opacity);
    return whole;
  }

  /** One complaint about the text of an element, at most. */
  function faint(element, style, what = "") {
    if (colour(style.color)[3] === 0) return []; // not there for the eye
    const ground = behind(element);
    if (ground === null) return [`${named(element)}${what} stands on a picture`];
    const shown = ratio(over(colour(style.color), ground, opacity(element)), ground);
    const size = parseFloat(style.fontSize);
    const large = size >= LARGE || (size >= LARGE_BOLD && Number(style.fontWeight) >= 700);
    const needed = large ? 3 : 4.5;
    return shown + 0.005 >= needed ? [] : [`${named(element)}${what} has a contrast of ${shown.toFixed(2)}`];
  }

  function contrast() {
    const seen = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.data.trim()) seen.add(walker.currentNode.parentElement);
    }
    const shown = [...seen].filter(
      (element) => visible(element) && !onlySpoken(element) && !element.closest(":disabled, [aria-disabled=true]"),
    );
    const empty = all("input, textarea").filter(
      (field) => visible(field) && field.placeholder && !field.value && !field.disabled,
    );
    return [
      ...shown.flatMap((element) => faint(element, getComputedStyle(element))),
      ...empty.flatMap((field) => faint(field, getComputedStyle(field, "::placeholder"), " (placeholder)")),
    ];
  }

  // --- structure ---------------------------------------------------------------------------------

  function document_() {
    const wrong = [];
    if (!document.documentElement.lang) wrong.push("the page does not say its language");
    if (!document.title.trim()) wrong.push("the page has no title");
    const ids = all("[id]").map((element) => element.id);
    wrong.push(...new Set(ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `two elements are #${id}`)));
    for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for", "aria-activedescendant"]) {
      for (const element of all(`[${name}]`)) {
        for (const id of (element.getAttribute(name) || "").split(/\s+/).filter(Boolean)) {
          if (!document.getElementById(id)) wrong.push(`${named(element)} has ${name}="${id}", which is nowhere`);
        }
      }
    }
    return wrong;
  }

  function labels() {
    const fields = all("input:not([type=hidden]), select, textarea, [contenteditable=true]").filter(visible);
    return fields
      .filter((field) => !(field.labels?.length || field.ariaLabel || field.hasAttribute("aria-labelledby")))
      .map((field) => `${named(field)} has no label`);
  }

  function nesting() {
    const inside = all(SPOKEN).filter((element) => {
      const outer = element.parentElement?.closest("button, a[href], summary, [role=button], [role=link], [role=tab]");
      return outer && tabbable(element);
    });
    const hidden = all("[aria-hidden=true]").flatMap((element) => [element, ...all("*", element)]).filter(tabbable);
    return [
      ...inside.map((element) => `${named(element)} is a control inside a control`),
      ...new Set(hidden.map((element) => `${named(element)} takes the focus, and is hidden from who hears it`)),
      ...all("[tabindex]").filter((e) => e.tabIndex > 0).map((e) => `${named(e)} has a tabindex of ${e.tabIndex}`),
    ];
  }

  function large(element) {
    const { width, height } = element.getBoundingClientRect();
    return width > TARGET - 0.5 && height > TARGET - 0.5;
  }

  function targets() {
    return all("button, input, select, textarea, summary, [role=button], [role=tab], [role=option]")
      .filter((element) => visible(element) && !onlySpoken(element) && !element.matches(":disabled"))
      .filter((element) => !large(element) && !(element.closest("label") && large(element.closest("label"))))
      .map((element) => `${named(element)} is too small to hit`);
  }

  // --- layout and motion -------------------------------------------------------------------------

  function clipped(element) {
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible") return true;
    }
    return false;
  }

  function width() {
    const limit = document.documentElement.clientWidth;
    const page = document.scrollingElement.scrollWidth;
    const wrong = page > limit ? [`the page is ${page} pixels wide, the window ${limit}`] : [];
    for (const element of all("body *")) {
      const box = element.getBoundingClientRect();
      if (box.width && (box.right > limit + 1 || box.left < -1) && visible(element) && !clipped(element)
          && !onlySpoken(element)) {
        wrong.push(`${named(element)} reaches from ${box.left.toFixed(0)} to ${box.right.toFixed(0)} of ${limit}`);
      }
    }
    return wrong.slice(0, 10);
  }

  /** What reaches out of the box it is drawn in, at the right. */
  function boxes() {
    const drawn = (style) => parseFloat(style.borderRightWidth) > 0 || colour(style.backgroundColor)[3] > 0;
    const wrong = all("body *").filter((element) => {
      const { right, width: wide } = element.getBoundingClientRect();
      if (!wide || element === document.body || !visible(element) || onlySpoken(element)) return false;
      for (let at = element, style = getComputedStyle(at); ; style = getComputedStyle(at)) {
        if (["absolute", "fixed"].includes(style.position) || style.translate !== "none") return false;
        at = at.parentElement;
        if (at === document.body) return false; // that is the width of the page
        const around = getComputedStyle(at);
        if (around.overflowX !== "visible") return false;
        if (drawn(around)) return right > at.getBoundingClientRect().right + 1;
      }
    });
    return wrong.slice(0, 10).map((element) => `${named(element)} reaches out of its box`);
  }

  /** For a browser whose user wants no motion. */
  function motion() {
    const runs = (animation) => {
      const { duration, iterations } = animation.effect.getComputedTiming();
      return duration > 20 || (iterations === Infinity && duration > 0);
    };
    const moving = document.getAnimations().filter(runs).map((a) => `${named(a.effect.target)} moves`);
    const slow = all("*").filter((element) => getComputedStyle(element).transitionDuration.split(",")
      .some((duration) => parseFloat(duration) > 0.02));
    const smooth = all("*").filter((element) => getComputedStyle(element).scrollBehavior === "smooth");
    return [
      ...moving,
      ...slow.map((element) => `${named(element)} changes slowly`),
      ...smooth.map((element) => `${named(element)} scrolls smoothly`),
    ].slice(0, 10);
  }

  // --- the focus ---------------------------------------------------------------------------------

  const LOOK = ["outline", "boxShadow", "borderColor", "backgroundColor", "textDecoration", "color"];

  const looks = (element) => {
    const chain = [];
    for (let at = element; at && chain.length < 4; at = at.parentElement) {
      const style = getComputedStyle(at);
      chain.push(LOOK.map((name) => style[name]).join(";"));
    }
    return chain.join("|");
  };

  const places = { unfocused: new Map(), reached: new Set(), first: null, last: null };

  /** Before the first Tab: how everything looks that can have the focus. */
  function unfocused() {
    const start = document.createElement("span"); // from where Tab goes on, wherever one has clicked before
    start.tabIndex = -1;
    document.body.prepend(start);
    start.focus();
    start.remove();
    window.__accessible = places;
    for (const element of all("*").filter(tabbable)) places.unfocused.set(element, looks(element));
  }

  /** After a Tab: where the focus is, whether one can see that, and how it lies to where it was before. */
  function focused() {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const known = window.__accessible;
    const last = known.last?.isConnected ? known.last : null;
    known.last = element;
    known.first ??= element;
    known.reached.add(element);
    const box = element.getBoundingClientRect();
    const before = last?.getBoundingClientRect();
    const region = (each) => each.closest("header, nav, aside, main, footer, form, dialog, section, article, [role]");
    const precedes = last && last.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING;
    return {
      name: named(element),
      last: last ? named(last) : null,
      again: last !== null && element === known.first,
      back: Boolean(precedes),
      above: last !== null && region(last) === region(element) && box.bottom <= before.top && box.left < before.right,
      // Inside a date, the browser shows the focus itself.
      seen: known.unfocused.get(element) !== looks(element) || element.matches("[type^=date]"),
      shown: visible(element) && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
  }

  /** After the last Tab: what is still there and was never come to. Of radio buttons, Tab leads to one. */
  function unreached() {
    const { unfocused: found, reached } = window.__accessible;
    const groups = new Set([...reached].filter((each) => each.type === "radio").map((each) => each.name));
    return [...found.keys()]
      .filter((each) => !reached.has(each) && each.isConnected && tabbable(each))
      .filter((each) => each.type !== "radio" || !groups.has(each.name))
      .map(named);
  }

  return {
    contrast, document: document_, labels, nesting, targets, width, boxes, motion, unfocused, focused, unreached,
  };
})()
