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
  for (const { nodes, text } of runsOf(element)) {
    let which = 0;
    for (let at = text.indexOf(what); at >= 0; at = text.indexOf(what, at + what.length)) {
      if (ranges.length >= 2000) return ranges;
      while (nodes[which + 1]?.from <= at) which += 1;
      let last = which;
      while (nodes[last + 1]?.from < at + what.length) last += 1;
      const range = new Range();
      range.setStart(nodes[which].node, at - nodes[which].from);
      range.setEnd(nodes[last].node, at + what.length - nodes[last].from);
      ranges.push(range);
    }
  }
  return ranges;
}

const BLOCKS = "p, li, pre, td, th, h3, h4, h5, h6, summary, figcaption, button, header, .text";

/** The text nodes of an element in runs: highlighted code and emphasis part the text of a line into nodes. */
function runsOf(element) {
  const runs = [];
  let block;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const around = node.parentElement.closest(BLOCKS);
    if (around !== block || !runs.length) runs.push({ nodes: [], parts: [], length: 0 });
    block = around;
    const lower = node.data.toLowerCase();
    const run = runs.at(-1);
    run.nodes.push({ node, from: run.length });
    run.parts.push(lower.length === node.data.length ? lower : node.data);
    run.length += node.data.length;
  }
  return runs.map(({ nodes, parts }) => ({ nodes, text: parts.join("") }));
}
