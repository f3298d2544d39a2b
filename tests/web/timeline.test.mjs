// The timeline: nothing overlaps, time goes from left to right, and long pauses take little room.

import assert from "node:assert/strict";
import { test } from "node:test";
import { layout, momentsOf, scaleOf, stretches } from "../../src/antiphon/web/static/js/timeline_layout.js";

const span = (kind, start, end, more = {}) => ({
  kind,
  id: `${kind} ${start}`,
  title: "",
  start,
  end,
  ...more,
});
const HOUR = 3_600_000;

test("time is cut into stretches without gaps", () => {
  const parts = stretches([span("turn", 0, 10), span("tool", 2, 4), span("turn", 20, null)], 25);
  assert.deepEqual(
    parts.map(({ start, end, busy }) => [start, end, busy]),
    [
      [0, 2, true],
      [2, 4, true],
      [4, 10, true],
      [10, 20, false],
      [20, 25, true],
    ],
  );
});

test("places never go back, and stay inside", () => {
  let seed = 7;
  const random = (to) => (seed = (seed * 48_271) % 2_147_483_647) % to;
  for (let round = 0; round < 60; round += 1) {
    const items = Array.from({ length: 1 + random(30) }, () => {
      const start = random(10) ? random(20_000) : random(90 * HOUR);
      return span(
        ["prompt", "turn", "tool", "question"][random(4)],
        start,
        random(8) ? start + random(5000) : null,
      );
    });
    const now = 100 * HOUR;
    const { place } = scaleOf(items, now);
    const times = items.flatMap((item) => [item.start, item.end ?? now]).sort((one, two) => one - two);
    times.reduce((last, time) => {
      const at = place(time);
      assert.ok(at >= last && at <= 1, `${time}: ${at} after ${last}`);
      return at;
    }, 0);
    for (const { bars } of layout(items, now).lanes) {
      for (const bar of bars) assert.ok(bar.left >= 0 && bar.width >= 0 && bar.left + bar.width <= 1 + 1e-9);
    }
  }
});

test("what is at the same time stands in rows of its own", () => {
  const items = [span("tool", 0, 100), span("tool", 10, 50), span("tool", 60, 90), span("tool", 200, 300)];
  const { lanes } = layout(items, 300);
  const tools = lanes.find((lane) => lane.kind === "tool");
  assert.deepEqual(
    tools.bars.map((bar) => bar.row),
    [0, 1, 1, 0],
  );
  assert.equal(tools.rows, 2);
});

test("a night between two turns is a short break", () => {
  const items = [span("turn", 0, 10_000), span("turn", 12 * HOUR, 12 * HOUR + 10_000)];
  const { lanes, breaks } = layout(items, 13 * HOUR);
  const [first, second] = lanes.find((lane) => lane.kind === "turn").bars;
  assert.ok(first.width > 0.4 && second.width > 0.4, `${first.width} ${second.width}`);
  assert.equal(breaks.length, 1);
});

test("an hour of waiting leaves room for the rest", () => {
  const items = [
    span("turn", 0, 3000),
    span("tool", 0, 3000),
    span("turn", 3000, null),
    span("question", 3500, null),
  ];
  const { lanes } = layout(items, HOUR);
  const [first] = lanes.find((lane) => lane.kind === "turn").bars;
  assert.ok(first.width > 0.3, first.width);
});

test("a prompt and its turn are one moment, where the turn begins", () => {
  const items = [
    span("prompt", 0, 1, { messageId: "a" }),
    span("turn", 1, 100, { messageId: "a" }),
    span("tool", 5, 50),
    span("prompt", 10, 101, { messageId: "b" }),
    span("turn", 101, 120, { messageId: "b" }),
    span("turn", 200, 210),
    span("client", 0, null),
    span("prompt", 300, null, { messageId: "c" }),
  ];
  const told = momentsOf(items).map(({ item, turn }) => `${item.kind} ${turn ? "turn" : ""}`.trim());
  assert.deepEqual(told, ["prompt turn", "tool", "prompt turn", "turn", "prompt"]);
});

test("nothing is nothing, and one instant is no division by zero", () => {
  assert.deepEqual(
    layout([], 5).lanes.map((lane) => lane.bars),
    [[], [], [], []],
  );
  const [turn] = layout([span("turn", 5, 5)], 5).lanes.filter((lane) => lane.bars.length);
  assert.deepEqual([turn.bars[0].left, turn.bars[0].width], [0, 0]);
});
