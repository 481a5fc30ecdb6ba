// The ring of pending calls, by itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./face.mjs";

const { PendingCalls } = await module("queue/pending-calls");
const call = (ticket) => ({ ticket: ticket >>> 0 });

test("a ticket that is not here is nobody's, though its slot is taken", () => {
  const pending = new PendingCalls();
  pending.put(call(1));
  assert.equal(pending.take(1 + 64), undefined);
  assert.equal(pending.take(2), undefined);
  assert.equal(pending.take(1).ticket, 1);
  assert.equal(pending.take(1), undefined);
});

test("it grows with the span of open tickets, and keeps every call", () => {
  const pending = new PendingCalls();
  for (let ticket = 1; ticket <= 5000; ticket += 1) {
    pending.put(call(ticket));
    if (ticket % 2) assert.equal(pending.take(ticket).ticket, ticket);
  }
  assert.equal(pending.size, 2500);
  assert.deepEqual(
    pending.drain().map(({ ticket }) => ticket),
    Array.from({ length: 2500 }, (_, i) => 2 * i + 2),
  );
  assert.equal(pending.size, 0);
});

test("a steady stream needs no more room, also where tickets wrap", () => {
  const pending = new PendingCalls();
  const first = 2 ** 32 - 500;
  for (let i = 0; i < 1000; i += 1) {
    pending.put(call(first + i));
    if (i >= 10)
      assert.equal(
        pending.take((first + i - 10) >>> 0).ticket,
        (first + i - 10) >>> 0,
      );
  }
  assert.equal(pending.size, 10);
  assert.equal(pending.slots.length, 64);
});

test("the room of one burst is given back, that of every frame is kept", () => {
  const pending = new PendingCalls();
  let ticket = 0;
  const frame = (calls) => {
    const tickets = Array.from({ length: calls }, () => (ticket += 1));
    for (const next of tickets) pending.put(call(next));
    for (const next of tickets) pending.take(next);
    return pending.slots.length;
  };
  assert.equal(frame(5000), 8192);
  assert.deepEqual([5000, 3000, 5000].map(frame), [8192, 8192, 8192]);
  assert.deepEqual([10, 10, 10].map(frame), [4096, 2048, 1024]);
  for (let i = 0; i < 10; i += 1) frame(10);
  assert.equal(pending.slots.length, 64);
});
