// Search in many texts, in short slices, so that the page stays responsive.

const SLICE_MS = 8;
const MOST = 10_000;

/** How often a text occurs in another, in any case, at most `most` times. Pure. */
export function countIn(text, wanted, most = MOST) {
  const [inside, what] = [text.toLowerCase(), wanted.toLowerCase()];
  let count = 0;
  let at = inside.indexOf(what);
  for (; at >= 0 && count < most; at = inside.indexOf(what, at + what.length)) count += 1;
  return count;
}

/**
 * Call `found(results, done)` with the indexes of items and the number of their matches, as they are found.
 * @returns {() => void} a function that stops the search
 */
export function search(items, wanted, textsOf, found) {
  const results = [];
  let at = items.length - 1;
  let total = 0;
  let timer = 0;
  const step = () => {
    const until = performance.now() + SLICE_MS;
    while (at >= 0 && performance.now() < until && total < MOST) {
      let count = 0;
      for (const text of textsOf(items[at])) count += countIn(text, wanted, MOST - total);
      if (count) results.push({ index: at, count });
      total += count;
      at -= 1;
    }
    const done = at < 0 || total >= MOST;
    found(results, done);
    if (!done) timer = setTimeout(step);
  };
  step();
  return () => clearTimeout(timer);
}

/** The places of a text within an element, as ranges. */
export function rangesIn(element, wanted) {
  const what = wanted.toLowerCase();
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = node.data.toLowerCase();
    for (let at = inside.indexOf(what); at >= 0; at = inside.indexOf(what, at + what.length)) {
      if (inside.length !== node.data.length || ranges.length >= 2000) break;
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + what.length);
      ranges.push(range);
    }
  }
  return ranges;
}
