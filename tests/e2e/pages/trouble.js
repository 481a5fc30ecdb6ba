// Everything that can go wrong with a session, at once and at high rates.
//
// One round of it, seeded. Which calls went wrong is counted here; whether memory
// is held is looked at from outside, between two rounds.

import { open } from "/pkg/dist/index.js";
import { Traffic } from "/traffic.js";
import { random } from "/workload.js";

const sleep = (ms) => new Promise((run) => setTimeout(run, ms));

/**
 * Seconds whose calls come at once while the device is away. Later no more than one second's
 * calls are pending, however slow the machine: so every round, the first one too, needs the
 * most memory that any does.
 */
const BURST = 5;

/**
 * Calls on `gpu` for so many seconds while devices go, calls are given up or out of
 * time, and other sessions come and are disposed of. Resolves to what became of all.
 */
export async function trouble(gpu, { seconds, seed, perSecond = 2000 }) {
  const chance = random(seed);
  const reports = [await burst(gpu, perSecond * BURST)];
  const until = performance.now() + seconds * 1000;
  const going = () => performance.now() < until;
  const traffic = new Traffic(gpu, {
    perSecond,
    atMost: perSecond,
    options: (i) => terms(i, chance),
  });
  let losses = 1;

  async function lose() {
    while (going()) {
      const { right } = traffic;
      await sleep(300 + chance() * 700);
      // One that has answered nothing yet would count towards giving the GPU up.
      if (traffic.right === right) continue;
      losses++;
      gpu.device?.destroy();
    }
  }

  async function visit() {
    while (going()) {
      const guest = await open({ engine: chance() < 0.5 ? "gpu" : "cpu" });
      const calls = new Traffic(guest, { perSecond: perSecond / 4 });
      await sleep(chance() * 500);
      if (chance() < 0.3) guest.device?.destroy();
      calls.pause();
      await guest.dispose();
      reports.push(await calls.stop());
    }
  }

  await Promise.all([lose(), visit()]);
  reports.push(await traffic.stop());
  return { ...sum(reports), losses, sessions: reports.length - 1 };
}

/** Makes so many calls at once while there is no device. */
async function burst(gpu, calls) {
  const traffic = new Traffic(gpu);
  traffic.pause();
  const over = lost(gpu);
  for (let call = 0; call < calls; call++) traffic.call();
  await over;
  return traffic.stop();
}

/** Destroys the device and waits for the next one. */
async function lost(gpu) {
  let off;
  const restored = new Promise((run) => (off = gpu.on("restored", run)));
  gpu.device.destroy();
  await restored;
  off();
}

/** The options of call number i: some are given up, early or late, some have little time. */
function terms(i, chance) {
  if (i % 11 === 0) return { deadlineMs: chance() * 60 };
  if (i % 7 !== 0) return undefined;
  const controller = new AbortController();
  setTimeout(() => controller.abort("given up"), chance() * 40);
  return { signal: controller.signal };
}

/** A new device and the same few frames, so that what is held after two rounds can be compared. */
export async function calm(gpu) {
  await lost(gpu);
  const traffic = new Traffic(gpu);
  traffic.pause();
  for (let frame = 1; frame <= 5; frame++) {
    for (let calls = 0; calls < 1000; calls++) traffic.call();
    const { right } = await traffic.stop();
    if (right < frame * 1000)
      throw new Error(`${right} right in frame ${frame}`);
  }
}

function sum(reports) {
  const total = { made: 0, right: 0, wrong: 0, unsettled: 0, refused: {} };
  for (const { refused, ...report } of reports) {
    for (const name of ["made", "right", "wrong", "unsettled"]) {
      total[name] += report[name];
    }
    for (const [code, amount] of Object.entries(refused)) {
      total.refused[code] = (total.refused[code] ?? 0) + amount;
    }
  }
  // All streams of a page see the same.
  return { ...total, uncaught: reports.at(-1).uncaught };
}
